use std::collections::HashSet;

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::reference::pattern::{Look, Pattern};
use crate::reference::patterns::{Reference, Rules};
use crate::reference::patterns_check::check;

const ALPHABETS: [&[char]; 3] = [&['a', 'b', '.'], &['a', 'é', '\n'], &['a', ' ', 'b']];

const LOOKS: [Look; 6] = [Look::Start, Look::End, Look::LineStart, Look::LineEnd, Look::Word, Look::NotWord];

/// The most characters of a text. It is small because every way to cut the text into deltas is tried.
const LONGEST: usize = 7;

/// To find the text that a scanner must hold, the reference tries all continuations of the text of up to this many
/// characters.
const REACH: usize = 5;

#[derive(Clone, Debug)]
pub struct Case {
    pub rules: Rules,
    alphabet: &'static [char],
    /// The texts. Each comes with the count of unarmed characters at its beginning, in which no stop fires.
    texts: Vec<(String, usize)>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let alphabet = *u.choose(&ALPHABETS)?;
        let rules = rules(u, alphabet)?;
        let mut texts = Vec::new();
        for _ in 0..3 {
            let length = u.int_in_range(1..=LONGEST)?;
            let text = (0..length).map(|_| u.choose(alphabet)).collect::<Result<String>>()?;
            texts.push((text, if u.ratio(1, 2)? { 0 } else { u.int_in_range(0..=length)? }));
        }
        Ok(Case { rules, alphabet, texts })
    }
}

impl Case {
    /// Panics unless the library gives the results of the reference (a simple program). Tries all ways to cut each text
    /// into deltas. If `held` is true, also compares the held text, unless a pattern is longer than `REACH`. Returns
    /// `false` if the library refuses the set.
    pub fn check(&self, held: bool) -> bool {
        if self.rules.set().is_err() {
            return false; // for example, a pattern can match the empty string
        }
        // The reference continues a text with these characters: the letters of the texts, and a word character and a
        // line break, on which a look-around may depend.
        let letters: String = self.alphabet.iter().chain(&['x', '\n']).collect();
        let reference = Reference::new(&self.rules, &letters, REACH);
        let mut patterns = self.rules.patterns.iter().chain(&self.rules.visible_patterns);
        let held = held && patterns.all(|pattern| pattern.length() <= REACH);
        for (text, unarmed) in &self.texts {
            check(&self.rules, &reference, text, *unarmed, &all_cuts(text.chars().count()), held);
        }
        true
    }
}

fn rules(u: &mut Unstructured<'_>, letters: &[char]) -> Result<Rules> {
    let mut rules = Rules { include_stop: u.ratio(1, 8)?, ..Rules::default() };
    for _ in 0..u.int_in_range(1..=2)? {
        let pattern = pattern(u, letters, 3)?;
        if u.ratio(1, 3)? { &mut rules.visible_patterns } else { &mut rules.patterns }.push(pattern);
    }
    if u.ratio(1, 2)? {
        rules.max_held = Some(u.int_in_range(0..=4)?);
    }
    let mut taken = HashSet::new();
    for _ in 0..u.int_in_range(0..=2)? {
        let word = word(u, letters)?;
        let list = if u.ratio(1, 3)? { &mut rules.visible } else { &mut rules.stop };
        if taken.insert(word.clone()) {
            list.push(word);
        }
    }
    let marker = word(u, letters)?;
    if u.ratio(1, 6)? && !taken.contains(&marker) {
        rules.protect = Some((marker, "/".into()));
    }
    Ok(rules)
}

fn word(u: &mut Unstructured<'_>, letters: &[char]) -> Result<String> {
    (0..u.int_in_range(1..=3)?).map(|_| u.choose(letters)).collect()
}

/// Draws a short regular expression over `letters`. `depth` limits how deep it is nested.
fn pattern(u: &mut Unstructured<'_>, letters: &[char], depth: usize) -> Result<Pattern> {
    let most = if depth == 0 { 1 } else { 11 };
    let boxed = |u: &mut Unstructured<'_>| Ok(Box::new(pattern(u, letters, depth - 1)?));
    Ok(match u.int_in_range(0..=most)? {
        0 | 1 => Pattern::Char(*u.choose(letters)?),
        2..=5 => Pattern::Both(boxed(u)?, boxed(u)?),
        6 => Pattern::Either(boxed(u)?, boxed(u)?),
        7 => Pattern::Maybe(boxed(u)?),
        8 => Pattern::Plus(*u.choose(letters)?),
        9 => Pattern::Look(*u.choose(&LOOKS)?),
        10 => Pattern::Twice(boxed(u)?),
        _ => Pattern::Not(*u.choose(letters)?),
    })
}

fn all_cuts(length: usize) -> Vec<Vec<usize>> {
    let chosen = |bits: usize| (1..length).filter(move |at| bits >> (at - 1) & 1 != 0);
    (0..1_usize << length.saturating_sub(1)).map(|bits| chosen(bits).collect()).collect()
}
