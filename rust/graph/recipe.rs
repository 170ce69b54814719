//! What a graph is made of, as it was given.

use super::Target;
use crate::patterns::PatternList;
use crate::repeat::Repeat;

#[derive(Clone, Debug, Default)]
pub(crate) struct Recipe {
    pub(crate) stop: Vec<String>,
    pub(crate) visible: Vec<String>,
    pub(crate) patterns: PatternList,
    pub(crate) protect: Vec<(String, String)>,
    pub(crate) regions: Vec<Draft>,
    pub(crate) stop_in: Option<Vec<String>>,
    pub(crate) repeat: Option<Repeat>,
}

/// A region, or a state of one: its name, and its markers with where each leads.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) markers: Vec<(String, Target)>,
}
