//! Random words that overlap each other, and text that is full of them.

use std::ops::RangeInclusive;

use arbitrary::{Arbitrary, Result, Unstructured};

/// Alphabets so small that words overlap. Some of their characters share their first or their last bytes.
const ALPHABETS: [&[char]; 5] =
    [&['a', 'b'], &['a', 'b', 'é'], &['é', 'è', 'ê'], &['日', '旦', 'a'], &['😀', '😁', '\u{1F300}', 'é']];

/// Characters that none of the words contains.
const FILLERS: [char; 3] = ['.', 'ü', '本'];

/// Random words of letters of `alphabet`. A case makes its stops, markers and texts from these words.
pub struct Words {
    alphabet: &'static [char],
    pub words: Vec<String>,
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
    /// Draws a word of at least one letter: a short word, a word that repeats itself, or a word that contains another
    /// word.
    fn word(&self, u: &mut Unstructured<'_>) -> Result<String> {
        let short = self.letters(u, 1..=4)?;
        Ok(match u.int_in_range(0..=9)? {
            0..=3 => short,
            4 | 5 => short.repeat(u.int_in_range(2..=12)?) + &self.letters(u, 1..=2)?,
            _ if self.words.is_empty() => short,
            _ => self.letters(u, 0..=2)? + u.choose(&self.words)? + &self.letters(u, 0..=2)?,
        })
    }

    fn letters(&self, u: &mut Unstructured<'_>, count: RangeInclusive<usize>) -> Result<String> {
        (0..u.int_in_range(count)?).map(|_| u.choose(self.alphabet)).collect()
    }

    /// Draws text that is full of words and parts of words. Some texts are so long that the library uses its vector
    /// search.
    pub fn text(&self, u: &mut Unstructured<'_>) -> Result<String> {
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
