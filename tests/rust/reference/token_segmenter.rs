//! A segmenter of tokens by the book, and the library's beside it.

use std::iter;

use stopscan::{EndReason, Finish, Segments, TokenOptions, TokenSegmenter};

use super::Match;
use super::segments;
use super::tokens::{Character, Plan, Token};

/// Panics unless a segmenter of tokens cuts the text that they spell as the reference does. What ends a stream of tokens
/// is the scanner's to show.
pub fn check_segmenter(plan: &Plan, rules: &segments::Rules, ids: &[u32]) {
    let Plan { options: TokenOptions { skip_special_tokens, prompt_token_ids, .. }, .. } = plan;
    let options = TokenOptions::default().skip_special_tokens(*skip_special_tokens);
    let options = options.prompt_token_ids(prompt_token_ids.clone());
    let segmenter = TokenSegmenter::new(&plan.vocabulary(), rules.segmenter(), &options);
    let mut markers = rules.regions.iter().flat_map(|region| &region.markers);
    let hopeless = *skip_special_tokens && markers.any(|(marker, _)| plan.is_spelled(marker));
    assert_eq!(segmenter.is_err(), hopeless, "{plan:#?}\nby {rules:#?}");
    let Ok(mut segmenter) = segmenter else {
        return;
    };
    let mut reference = segments::Reference::new(rules);
    let ids: Vec<u32> = ids.iter().copied().filter(|&id| plan.token(id).is_some()).collect();
    let mut scanned = 0;
    let mut marks = Vec::new();
    for count in 1..=ids.len() + 1 {
        let ended = count > ids.len();
        let read = &ids[..count.min(ids.len())];
        let mut characters = plan.spelled(read, ended);
        let new: String = characters[scanned..].iter().map(|character| character.0).collect();
        scanned = characters.len();
        let mut expected = reference.feed(&new, true);
        if ended {
            expected.extend(reference.flush());
        } else if let (Some(Token::Special(marker)), true) = (plan.token(read[count - 1]), options.skip_special_tokens)
        {
            if reference.leads(marker) {
                marks.push((count, scanned));
            }
            if reference.fires(marker) {
                characters = plan.spelled(read, true);
                let rest: String = characters[scanned..].iter().map(|character| character.0).collect();
                scanned = characters.len();
                expected.extend(reference.feed(&rest, true));
            }
            expected.extend(reference.pass_special(marker));
        }
        let out = match ended {
            true => owned(segmenter.flush(EndReason::Unknown)),
            false => owned(segmenter.feed(read[count - 1]).expect("it is known")),
        };
        let context = || format!("after {read:?} of {plan:#?}\nby {rules:#?}");
        assert_eq!(out, joined(expected), "output {}", context());
        assert_eq!(segmenter.held(), if ended { "" } else { reference.held() }, "held text {}", context());
        assert_eq!(segmenter.region(), segments::region_of(reference.region), "region {}", context());
        assert_eq!(segmenter.stop_match().map(Match::from), reference.matched.clone(), "match {}", context());
        let counts = tokens_in(rules, &reference.labels, &characters, &marks);
        assert_eq!(segmenter.tokens_in().collect::<Vec<_>>(), counts, "tokens of the regions {}", context());
        let kept = characters.iter().zip(&reference.labels).filter(|(_, label)| label.is_some());
        assert_eq!(segmenter.tokens_kept(), kept.map(|(character, _)| character.1).max().unwrap_or(0), "{}", context());
        assert_eq!(segmenter.tokens_seen(), read.len(), "tokens seen {}", context());
        let finish = if ended { Some(Finish::Ended(EndReason::Unknown)) } else { None };
        let finish = reference.matched.as_ref().map_or(finish, |_| Some(Finish::StopSequence));
        assert_eq!(segmenter.finish(), finish, "finish {}", context());
        if finish.is_some() {
            break;
        }
    }
    segmenter.reset();
    assert_eq!(
        (segmenter.region(), segmenter.finish(), segmenter.tokens_seen()),
        (segments::region_of(&rules.region), None, 0)
    );
}

/// How many tokens each region has: for each token it is asked what became of its text. One without text counts with
/// the text that follows, unless it is a marker or comes before one. `marks` has the number of each token that was a
/// marker, and how many characters went before it.
fn tokens_in<'a>(
    rules: &'a segments::Rules,
    labels: &[Option<&str>],
    characters: &[Character],
    marks: &[(usize, usize)],
) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for region in rules.regions.iter().map(|region| segments::region_of(&region.name)) {
        if counts.iter().all(|(name, _)| *name != region) {
            counts.push((region, 0));
        }
    }
    let labels = labels.iter().copied().chain(iter::repeat(None));
    let labelled: Vec<(usize, Option<&str>)> = characters.iter().map(|character| character.1).zip(labels).collect();
    for token in 1..=labelled.last().map_or(0, |last| last.0) {
        let at = labelled.iter().position(|(number, _)| *number >= token).expect("the last one has text");
        let own = labelled[at..].iter().filter(|(number, _)| *number == token);
        let label = match labelled[at].0 == token {
            true => own.filter_map(|(_, label)| *label).next(),
            false => labelled[at].1.filter(|_| !marks.iter().any(|&(mark, before)| token <= mark && before <= at)),
        };
        if let Some(count) = counts.iter_mut().find(|(name, _)| Some(*name) == label) {
            count.1 += 1;
        }
    }
    counts
}

fn owned(segments: Segments<'_>) -> Vec<segments::Segment> {
    segments.into_iter().map(|segment| (segment.region.into(), segment.text.into())).collect()
}

/// Neighbours of one region together.
fn joined(segments: Vec<segments::Segment>) -> Vec<segments::Segment> {
    let mut out: Vec<segments::Segment> = Vec::new();
    for (region, text) in segments {
        match out.last_mut().filter(|last| last.0 == region) {
            Some(last) => last.1.push_str(&text),
            None => out.push((region, text)),
        }
    }
    out
}
