//! The way of a token past the lock: most are ready strings in which nothing begins.

use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::objects::new_string;
use super::show::Show;
use super::tokens::Tokens;
use super::vocabulary::Ready;
use crate::graph::Cursor;
use crate::text::{NOTHING_PASSES, code_points};
use crate::tokens::Ends;

impl<E: Show> Tokens<E> {
    #[inline(always)]
    pub(super) fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        let Some((id, seen, Ready { shape, text })) = self.ready(token_id) else {
            return self.read(token_id);
        };
        let text = text.bind(token_id.py());
        if let Some(node) = self.guarded.plain_by(*shape) {
            let safe = E::whole(self.set.get(), node, text)?;
            self.guarded.count(shape.bytes(), shape.continued());
            self.seen.store(seen, Relaxed);
            return Ok(safe);
        }
        match self.walk(id, text, seen > self.limits.min_tokens)? {
            Some(safe) => {
                self.seen.store(seen, Relaxed);
                Ok(safe)
            }
            None => self.read(token_id),
        }
    }

    /// A token that ends no stream and is only its text, and how many there are with it.
    #[inline(always)]
    fn ready(&self, token_id: &Bound<'_, PyAny>) -> Option<(u32, usize, &Ready)> {
        let id: u32 = token_id.extract().ok()?;
        let seen = self.seen.load(Relaxed) + 1;
        let ends = self.end_bits & Ends::bit(id) != 0 && self.limits.ends.contains(id);
        if seen >= self.max_tokens || ends {
            return None;
        }
        Some((id, seen, self.vocabulary.get().ready.get(id as usize)?.as_ref()?))
    }

    /// What is safe now that a token was read in which a word may begin, or go on; `None` if the core has to read it. That
    /// reads a word that ends, and one that goes on for long.
    #[inline(never)]
    fn walk<'py>(&self, id: u32, ready: &Bound<'py, PyString>, armed: bool) -> PyResult<Option<Bound<'py, E::Out>>> {
        let (set, py) = (self.set.get(), ready.py());
        let graph = E::core(set).graph();
        let vocabulary = &self.vocabulary.get().core;
        let text = vocabulary.text(id);
        let Some(node) = self.guarded.node_to_count_at() else {
            let Some((node, length)) = self.guarded.plain(graph, text) else {
                return Ok(None);
            };
            let safe = E::whole(set, node, ready)?;
            return Ok(self.guarded.pass(text, length, armed).then_some(safe));
        };
        let before = Cursor { node, state: self.unread.state() };
        let mut after = before;
        if graph.read_words(&mut after, text, true).is_some() || after.node != node {
            return Ok(None);
        }
        let goes_on = after != Cursor::start(node);
        let kept = graph.held(after, self.hides_stops);
        let held = graph.held(before, self.hides_stops);
        if goes_on && !self.unread.has_room() {
            return Ok(None);
        }
        let output = |safe: &str| match safe {
            "" => E::nothing(py),
            safe => E::whole(set, node, &new_string(py, safe)?),
        };
        let safe = match (held, kept) {
            (0, 0) => E::whole(set, node, ready)?,
            (0, _) => output(&text[..text.len() - kept])?,
            _ => {
                let safe = |joined: &str, length: usize| output(&joined[length - held..joined.len() - kept]);
                match self.unread.with_text(vocabulary, text, safe) {
                    Some(safe) => safe?,
                    None => return Ok(None),
                }
            }
        };
        if goes_on {
            self.unread.push(id, after.state);
            self.guarded.let_pass(NOTHING_PASSES);
        } else {
            for text in self.unread.ids().map(|id| vocabulary.text(id)).chain([text]) {
                self.guarded.count(text.len(), text.len() - code_points(text));
            }
            self.unread.forget();
            self.guarded.let_pass(graph.plain(node).filter());
        }
        Ok(Some(safe))
    }
}
