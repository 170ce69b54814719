use std::collections::HashSet;

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::reference::patterns::{Lead, Pattern, Reference, Rules, check};

const ALPHABETS: [&[char]; 3] = [&['a', 'b', '.'], &['a', 'é', '\n'], &['a', ' ', 'b']];

/// Every cut of a text is tried: it has few characters.
const LONGEST: usize = 6;

/// How far the reference looks for a continuation.
const REACH: usize = 6;

#[derive(Clone, Debug)]
pub struct Case {
    pub rules: Rules,
    alphabet: &'static [char],
    texts: Vec<String>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let alphabet = *u.choose(&ALPHABETS)?;
        let rules = rules(u, alphabet)?;
        let mut texts = Vec::new();
        for _ in 0..3 {
            texts.push((0..u.int_in_range(1..=LONGEST)?).map(|_| u.choose(alphabet)).collect::<Result<String>>()?);
        }
        Ok(Case { rules, alphabet, texts })
    }
}

impl Case {
    /// Panics unless the library does what the reference does, in every cut of each text; whether it could be tried at
    /// all. The held text costs the reference the most.
    pub fn check(&self, held: bool) -> bool {
        if self.rules.set().is_err() {
            return false; // it can match the empty string
        }
        let letters: String = self.alphabet.iter().chain(&['-']).collect();
        let reference = Reference::new(&self.rules, &letters, REACH);
        for text in &self.texts {
            check(&self.rules, &reference, text, &all_cuts(text), held);
        }
        true
    }
}

fn rules(u: &mut Unstructured<'_>, letters: &[char]) -> Result<Rules> {
    let mut rules = Rules { include_stop: u.ratio(1, 8)?, ..Rules::default() };
    for _ in 0..u.int_in_range(1..=2)? {
        let lead = *u.choose(&[Lead::Nothing, Lead::Nothing, Lead::Word, Lead::Line])?;
        rules.patterns.push(Pattern { lead, body: body(u, letters, 3)?, trail: u.ratio(1, 4)? });
    }
    let mut taken = HashSet::new();
    for _ in 0..u.int_in_range(0..=2)? {
        let word = (0..u.int_in_range(1..=3)?).map(|_| u.choose(letters)).collect::<Result<String>>()?;
        let list = if u.ratio(1, 3)? { &mut rules.visible } else { &mut rules.stop };
        if taken.insert(word.clone()) {
            list.push(word);
        }
    }
    Ok(rules)
}

/// A regular expression over the letters: short, nested, repeated.
fn body(u: &mut Unstructured<'_>, letters: &[char], depth: usize) -> Result<String> {
    let most = if depth == 0 { 1 } else { 9 };
    Ok(match u.int_in_range(0..=most)? {
        0 | 1 => letter(u, letters)?,
        2..=5 => body(u, letters, depth - 1)? + &body(u, letters, depth - 1)?,
        6 => format!("(?:{}|{})", body(u, letters, depth - 1)?, body(u, letters, depth - 1)?),
        7 => format!("(?:{})?", body(u, letters, depth - 1)?),
        8 => format!("(?:{})+", letter(u, letters)?),
        _ => format!("[^{}]", letter(u, letters)?),
    })
}

fn letter(u: &mut Unstructured<'_>, letters: &[char]) -> Result<String> {
    Ok(regex::escape(&u.choose(letters)?.to_string()))
}

fn all_cuts(text: &str) -> Vec<Vec<usize>> {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    let chosen =
        |bits: usize| places.iter().enumerate().filter(move |(at, _)| bits >> at & 1 != 0).map(|(_, &cut)| cut);
    (0..1_usize << places.len()).map(|bits| chosen(bits).collect()).collect()
}
