//! One random stream: rules and what a caller does, drawn from bytes, and checked against the reference.
//!
//! The fuzzer and the property tests draw the same cases from the same bytes.

use std::collections::HashSet;

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::reference::{Match, Op, Pair, Rules};

/// Alphabets small enough that words collide. Some of their characters share their first or their last bytes.
const ALPHABETS: [&[char]; 5] =
    [&['a', 'b'], &['a', 'b', 'é'], &['é', 'è', 'ê'], &['日', '旦', 'a'], &['😀', '😁', '\u{1F300}', 'é']];

/// Characters that stand in no word.
const FILLERS: [char; 3] = ['.', 'ü', '本'];

/// More operations say nothing new.
const MOST_OPS: usize = 60;

#[derive(Clone, Debug)]
pub struct Case {
    pub rules: Rules,
    pub ops: Vec<Op>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let words = Words::arbitrary(u)?;
        let rules = words.rules(u)?;
        let mut ops = Vec::new();
        let mut rest = String::new();
        while !u.is_empty() && ops.len() < MOST_OPS {
            // A text ends anywhere in its last word, and the next one goes on from there.
            let text = rest + &words.text(u)?;
            let cut = u.int_in_range(0..=text.chars().count().min(8))?;
            let end = text.char_indices().rev().take(cut).last().map_or(text.len(), |(at, _)| at);
            rest = text[end..].into();
            ops.push(op(u, text[..end].into())?);
        }
        Ok(Case { rules, ops })
    }
}

impl Case {
    /// Panics unless the library does what the reference does, at every step.
    pub fn check(self) {
        let deltas = self.ops.iter().filter_map(|op| match op {
            Op::Feed { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        check_set(&self.rules, deltas.collect());
        let mut pair = Pair::new(&self.rules);
        for op in self.ops {
            let inert = pair.matched().is_some();
            pair.apply(op);
            if inert {
                pair.apply(Op::Reset); // there is nothing more to see
            }
        }
    }
}

/// Panics unless `find` and `truncate` agree with a scanner that is fed the whole text.
fn check_set(rules: &Rules, text: String) {
    let rules = Rules { include_stop: false, start_protected: false, ..rules.clone() };
    let mut pair = Pair::new(&rules);
    let kept = pair.apply(Op::Feed { delta: text.clone(), armed: true }) + &pair.apply(Op::Flush);
    let set = rules.set().expect("these rules compile");
    let (truncated, found) = set.truncate(&text);
    assert_eq!(truncated, kept, "truncate of {text:?} with {rules:#?}");
    assert_eq!(found.map(Match::from), pair.matched(), "truncate of {text:?} with {rules:#?}");
    assert_eq!(set.find(&text), found, "find of {text:?} with {rules:#?}");
}

/// What stops, markers and text are made of.
struct Words {
    alphabet: &'static [char],
    words: Vec<String>,
}

impl<'a> Arbitrary<'a> for Words {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Words> {
        let alphabet = *u.choose(&ALPHABETS)?;
        let mut words = Words { alphabet, words: Vec::new() };
        for _ in 0..u.int_in_range(1..=6)? {
            let word = words.word(u)?;
            words.words.push(word);
        }
        Ok(words)
    }
}

impl Words {
    /// A word that is not empty: short, or one that repeats itself, or one that has another one inside.
    fn word(&self, u: &mut Unstructured<'_>) -> Result<String> {
        let short = self.letters(u, 1..=4)?;
        Ok(match u.int_in_range(0..=9)? {
            0..=3 => short,
            4 | 5 => short.repeat(u.int_in_range(2..=12)?) + &self.letters(u, 1..=2)?,
            _ if self.words.is_empty() => short,
            _ => self.letters(u, 0..=2)? + u.choose(&self.words)? + &self.letters(u, 0..=2)?,
        })
    }

    fn letters(&self, u: &mut Unstructured<'_>, count: std::ops::RangeInclusive<usize>) -> Result<String> {
        (0..u.int_in_range(count)?).map(|_| u.choose(self.alphabet)).collect()
    }

    fn rules(&self, u: &mut Unstructured<'_>) -> Result<Rules> {
        let mut rules = Rules { include_stop: u.ratio(1, 8)?, ..Rules::default() };
        let mut taken = HashSet::new();
        for word in &self.words {
            match u.int_in_range(0..=9)? {
                0..=4 => rules.stop.push(word.clone()),
                5 | 6 if !rules.stop.contains(word) => rules.visible.push(word.clone()),
                7 | 8 => {
                    let closing = u.choose(&self.words)?;
                    if taken.insert(word.clone()) {
                        rules.protect.push((word.clone(), closing.clone()));
                    }
                }
                _ => {}
            }
        }
        // A string is one thing only.
        rules.stop.retain(|stop| !rules.visible.contains(stop));
        let is_stop = |word: &String| rules.stop.contains(word) || rules.visible.contains(word);
        rules.protect.retain(|(open, close)| !is_stop(open) && !is_stop(close));
        rules.start_protected = !rules.protect.is_empty() && u.ratio(1, 4)?;
        Ok(rules)
    }

    /// Text that is full of words and beginnings of words. It may be long, and searched with the prefilter.
    fn text(&self, u: &mut Unstructured<'_>) -> Result<String> {
        let mut text = String::new();
        for _ in 0..u.int_in_range(0..=4)? {
            let word = u.choose(&self.words)?;
            let letters = word.chars().count();
            match u.int_in_range(0..=9)? {
                0 | 1 => text += &self.letters(u, 1..=3)?,
                2 | 3 => text += word,
                4 | 5 => text.extend(word.chars().take(u.int_in_range(0..=letters)?)),
                6 => text.extend(word.chars().skip(u.int_in_range(0..=letters)?)),
                7 => text.extend(std::iter::repeat_n(u.choose(&FILLERS)?, u.int_in_range(1..=40)?)),
                _ => text.extend(std::iter::repeat_n(u.choose(&FILLERS)?, u.int_in_range(100..=200)?)),
            }
        }
        Ok(text)
    }
}

/// What may be done with `text`, or without.
fn op(u: &mut Unstructured<'_>, text: String) -> Result<Op> {
    Ok(match u.int_in_range(0..=31)? {
        0 => Op::Flush,
        1 => Op::Bypass(text),
        2 => Op::Reset,
        3..=10 => Op::Feed { delta: text, armed: false },
        _ => Op::Feed { delta: text, armed: true },
    })
}
