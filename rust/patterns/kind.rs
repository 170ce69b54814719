//! What a pattern that looks around can tell of a character.

use regex_syntax::hir::Look;

/// What stands before or behind a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    LineFeed,
    /// An ASCII letter, a digit or `_`.
    Word,
    Other,
    /// Nothing: it is the beginning or the end of the stream.
    Edge,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::LineFeed, Kind::Word, Kind::Other, Kind::Edge];

    pub(super) fn of(character: char) -> Kind {
        match character {
            '\n' => Kind::LineFeed,
            '_' => Kind::Word,
            _ if character.is_ascii_alphanumeric() => Kind::Word,
            _ => Kind::Other,
        }
    }

    /// The kind of the character that a byte ends.
    pub(super) fn of_last(byte: u8) -> Kind {
        if byte.is_ascii() { Kind::of(byte as char) } else { Kind::Other }
    }
}

/// Whether `look` holds between what stands before and behind it. Others than these are refused.
pub(super) fn holds(look: Look, before: Kind, behind: Kind) -> bool {
    match look {
        Look::Start => before == Kind::Edge,
        Look::End => behind == Kind::Edge,
        Look::StartLF => matches!(before, Kind::Edge | Kind::LineFeed),
        Look::EndLF => matches!(behind, Kind::Edge | Kind::LineFeed),
        Look::WordAscii => (before == Kind::Word) != (behind == Kind::Word),
        Look::WordAsciiNegate => (before == Kind::Word) == (behind == Kind::Word),
        _ => false,
    }
}
