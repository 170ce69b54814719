//! What is known of a text that is read: how far, what of it is held, and whether anything can begin in it.

use std::ops::Add;

mod held;
mod plain;
mod shape;

pub(crate) use held::{Held, Released};
pub(crate) use plain::Plain;
pub use shape::{NOTHING_PASSES, Shape};

/// A place in the text of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    #[doc(hidden)]
    pub code_points: usize,
    #[doc(hidden)]
    pub bytes: usize,
}

impl Place {
    #[doc(hidden)]
    pub fn after(text: &str) -> Place {
        Place { code_points: code_points(text), bytes: text.len() }
    }

    /// The place where `text` begins that ends here.
    pub(crate) fn before(self, text: &str) -> Place {
        let length = Place::after(text);
        Place { code_points: self.code_points - length.code_points, bytes: self.bytes - length.bytes }
    }

    #[inline]
    pub(crate) fn pass(&mut self, text: &str) {
        self.code_points += code_points(text);
        self.bytes += text.len();
    }
}

impl Add for Place {
    type Output = Place;

    fn add(self, length: Place) -> Place {
        Place { code_points: self.code_points + length.code_points, bytes: self.bytes + length.bytes }
    }
}

/// How many code points `text` has: the bytes of its UTF-8 that continue none.
pub fn code_points(text: &str) -> usize {
    text.bytes().filter(|byte| byte & 0xC0 != 0x80).count()
}
