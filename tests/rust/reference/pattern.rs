//! Regular expressions as trees. To find where a pattern matches, every way to match is tried.

use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub enum Pattern {
    Char(char),
    Not(char),
    Plus(char),
    Look(Look),
    Both(Box<Pattern>, Box<Pattern>),
    Either(Box<Pattern>, Box<Pattern>),
    Maybe(Box<Pattern>),
    Twice(Box<Pattern>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Start,
    End,
    LineStart,
    LineEnd,
    Word,
    NotWord,
}

/// The character before or after a position in the text. `None` at the beginning and at the end of the stream.
type Beside = Option<char>;

/// The kinds of characters that may follow a text, because a look-around such as `\b` may depend on them: a line break,
/// a word character, another character, or none (the end).
const BEHIND: [Beside; 4] = [Some('\n'), Some('a'), Some('.'), None];

impl Pattern {
    pub fn text(&self) -> String {
        match self {
            Pattern::Char(letter) => regex::escape(&letter.to_string()),
            Pattern::Not(letter) => format!("[^{}]", regex::escape(&letter.to_string())),
            Pattern::Plus(letter) => format!("(?:{})+", regex::escape(&letter.to_string())),
            Pattern::Look(Look::Start) => "^".into(),
            Pattern::Look(Look::End) => "$".into(),
            Pattern::Look(Look::LineStart) => "(?m:^)".into(),
            Pattern::Look(Look::LineEnd) => "(?m:$)".into(),
            Pattern::Look(Look::Word) => r"\b".into(),
            Pattern::Look(Look::NotWord) => r"\B".into(),
            Pattern::Both(one, other) => one.text() + &other.text(),
            Pattern::Either(one, other) => format!("(?:{}|{})", one.text(), other.text()),
            Pattern::Maybe(one) => format!("(?:{})?", one.text()),
            Pattern::Twice(one) => format!("(?:{}){{2}}", one.text()),
        }
    }

    /// How many characters the longest match has, if each `+` matches only once.
    pub fn length(&self) -> usize {
        match self {
            Pattern::Char(_) | Pattern::Not(_) | Pattern::Plus(_) => 1,
            Pattern::Look(_) => 0,
            Pattern::Both(one, other) => one.length() + other.length(),
            Pattern::Either(one, other) => one.length().max(other.length()),
            Pattern::Maybe(one) => one.length(),
            Pattern::Twice(one) => 2 * one.length(),
        }
    }

    /// Returns all positions at which a match that begins at `at` can end. `behind` is the character that follows
    /// `text`, because a look-around may depend on it.
    fn ends(&self, text: &[char], behind: Beside, at: usize) -> BTreeSet<usize> {
        let one = |fits: bool| if fits { BTreeSet::from([at + 1]) } else { BTreeSet::new() };
        let both = |one: &Pattern, other: &Pattern| {
            one.ends(text, behind, at).into_iter().flat_map(|at| other.ends(text, behind, at)).collect()
        };
        match self {
            Pattern::Char(letter) => one(text.get(at) == Some(letter)),
            Pattern::Not(letter) => one(text.get(at).is_some_and(|other| other != letter)),
            Pattern::Plus(letter) => (at..text.len()).take_while(|&at| text[at] == *letter).map(|at| at + 1).collect(),
            Pattern::Look(look) => {
                let before = at.checked_sub(1).map(|before| text[before]);
                let behind = text.get(at).copied().or(behind);
                if look.holds(before, behind) { BTreeSet::from([at]) } else { BTreeSet::new() }
            }
            Pattern::Both(one, other) => both(one, other),
            Pattern::Either(one, other) => &one.ends(text, behind, at) | &other.ends(text, behind, at),
            Pattern::Maybe(one) => &one.ends(text, behind, at) | &BTreeSet::from([at]),
            Pattern::Twice(one) => both(one, one),
        }
    }

    /// Whether the pattern matches all of `text[start..]`. `behind` is the character after `text`.
    pub(super) fn matches(&self, text: &[char], start: usize, behind: Beside) -> bool {
        self.ends(text, behind, start).contains(&text.len())
    }

    /// Whether the pattern matches `text[start..]` as a whole, whatever follows.
    pub(super) fn matches_surely(&self, text: &[char], start: usize) -> bool {
        BEHIND.iter().all(|&behind| self.matches(text, start, behind))
    }
}

impl Look {
    fn holds(self, before: Beside, behind: Beside) -> bool {
        match self {
            Look::Start => before.is_none(),
            Look::End => behind.is_none(),
            Look::LineStart => before.is_none_or(|letter| letter == '\n'),
            Look::LineEnd => behind.is_none_or(|letter| letter == '\n'),
            Look::Word => is_word(before) != is_word(behind),
            Look::NotWord => is_word(before) == is_word(behind),
        }
    }
}

fn is_word(character: Beside) -> bool {
    character.is_some_and(|character| character == '_' || character.is_ascii_alphanumeric())
}
