//! Compares the library's segmenter of tokens with a reference, the segmenter of text in `segments`.

use stopscan::{EndReason, Finish, Segments, TokenOptions, TokenSegmenter};

use super::Match;
use super::segments;
use super::tokens::{Character, Plan, Token};

/// Feeds `ids` to the library's segmenter of tokens, and panics unless it divides their text into the same segments as
/// the reference does. (Stop tokens, EOS and limits are tested in `token_scanner`.)
pub fn check_segmenter(plan: &Plan, rules: &segments::Rules, ids: &[u32]) {
    let Plan { options: TokenOptions { skip_special_tokens, unknown_ids, prompt_token_ids, .. }, .. } = plan;
    let options = TokenOptions::default().skip_special_tokens(*skip_special_tokens).unknown_ids(*unknown_ids);
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
    let mut regions = Vec::new();
    let mut marked = 0;
    for count in 1..=ids.len() + 1 {
        let ended = count > ids.len();
        let read = &ids[..count.min(ids.len())];
        let mut characters = plan.spelled(read, ended);
        let text = |characters: &[Character]| characters.iter().map(|character| character.0).collect::<String>();
        let new = &characters[scanned..];
        let newest = new.iter().position(|character| character.1 == count).unwrap_or(new.len());
        let (before, newest) = (text(&new[..newest]), text(&new[newest..]));
        scanned = characters.len();
        reference.marker_ended = false;
        let mut expected = reference.feed(&before, true);
        let own = if ended { None } else { plan.own_text(read, count) };
        expected.extend(match own {
            Some(own) if own == newest && reference.leads(&own) => reference.feed_marker(&own, true),
            _ => reference.feed(&newest, true),
        });
        if ended {
            expected.extend(reference.flush());
        } else if let (Some(Token::Special(marker)), true) = (plan.token(read[count - 1]), options.skip_special_tokens)
        {
            if reference.leads(marker) && !reference.fires(marker) {
                marked = count;
                reference.marker_ended = true;
            }
            if reference.fires(marker) {
                characters = plan.spelled(read, true);
                expected.extend(reference.feed(&text(&characters[scanned..]), true));
                scanned = characters.len();
            }
            expected.extend(reference.pass_special(marker));
        }
        if !ended {
            regions.push(if reference.marker_ended { None } else { Some(segments::region_of(reference.region)) });
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
        // The position of the last token that counts. Either its text was emitted or taken out as a marker, or the
        // token is a marker without text.
        let gone = reference.labels.len().checked_sub(1).map_or(0, |last| characters[last].1).max(marked);
        for (region, tokens) in segmenter.tokens_in() {
            let expected = regions.iter().take(gone).filter(|other| **other == Some(region)).count();
            assert_eq!(tokens, expected, "tokens in {region:?} {}", context());
        }
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

fn owned(segments: Segments<'_>) -> Vec<segments::Segment> {
    segments.into_iter().map(|segment| (segment.region.into(), segment.text.into(), segment.part)).collect()
}

/// Joins neighbouring segments of one part.
fn joined(segments: Vec<segments::Segment>) -> Vec<segments::Segment> {
    let mut out: Vec<segments::Segment> = Vec::new();
    for (region, text, part) in segments {
        match out.last_mut().filter(|last| last.2 == part) {
            Some(last) => last.1.push_str(&text),
            None => out.push((region, text, part)),
        }
    }
    out
}
