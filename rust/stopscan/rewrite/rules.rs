//! Compiles the keys of a `RewriteSet` into a trie. Each node stands for a text with which keys begin. If a stream is
//! at a node that has no child for the next byte, the text of the node cannot become a longer key. The node then tells
//! which keys in its text are replaced, and at which node the search goes on.
//!
//! The method is LinMaxMatch (Song et al., "Fast WordPiece Tokenization", 2021), which was made for tokenizers.

use crate::automaton::{Automaton, Config, Words};
use crate::error::{ErrorKind, MAX_SET_BYTES, Role, StopSetError};
use crate::room;

/// The most memory that `Rules::new` needs: `MEMORY_OF_BYTE` bytes for each byte of the keys and replacements, and
/// `MEMORY_OF_KEY` bytes for each key.
const MEMORY_OF_BYTE: usize = 80;
const MEMORY_OF_KEY: usize = 256;

/// In the table `settled`, a replacement is stored as its index plus one; 0 stands for "no replacement".
const NONE: u32 = 0;

/// The rules of a set. The nodes of the trie are numbered breadth first, the root is 0. Keys are sorted, so that two
/// sets with the same rules are equal.
#[derive(Debug)]
pub(crate) struct Rules {
    trie: Automaton,
    /// The replacement of each key.
    values: Words,
    /// For each node, the length of its text in bytes. A stream at the node holds this text.
    depths: Vec<u32>,
    /// For each node, the index of one of the keys that begin with the text of the node.
    keys: Vec<u32>,
    /// For each node, where a stream goes if the node has no child for the next byte. The beginning of the node's text
    /// is then *settled*: the keys in it are replaced, and it is emitted. The *rest* of the text may still become a
    /// key. The stream goes to the node that stands for this rest.
    rests: Vec<u32>,
    /// For each node, the keys in its text that are replaced if the node has no child for the next byte. They form a
    /// linked list in `replacements`, in which each item leads to the one before it. The number here is the index of
    /// the last item plus one, or `NONE`.
    settled: Vec<u32>,
    replacements: Vec<Replacement>,
}

/// A key in the text of a node. The key is replaced if the node has no child for the next byte.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    /// The replacement before this one in the same text, or `NONE`.
    before: u32,
    start: u32,
    key: u32,
}

impl Rules {
    pub(super) fn new(pairs: &[(impl AsRef<str>, impl AsRef<str>)]) -> Result<Rules, StopSetError> {
        let bytes = pairs.iter().map(|(key, value)| key.as_ref().len() + value.as_ref().len()).sum();
        if bytes > MAX_SET_BYTES {
            return Err(ErrorKind::TooLarge { what: "keys and replacements", bytes }.into());
        }
        room::ask(bytes * MEMORY_OF_BYTE + pairs.len() * MEMORY_OF_KEY)?;
        let mut sorted = Vec::with_capacity(pairs.len());
        for (index, (key, value)) in pairs.iter().enumerate() {
            match key.as_ref() {
                "" => return Err(ErrorKind::Empty { role: Role::Key, index }.into()),
                key => sorted.push((key, value.as_ref())),
            }
        }
        sorted.sort_unstable();
        sorted.dedup();
        if let Some(both) = sorted.windows(2).find(|both| both[0].0 == both[1].0) {
            return Err(ErrorKind::TwoValues { key: both[0].0.into() }.into());
        }
        let (keys, values): (Vec<_>, Vec<_>) = sorted.into_iter().unzip();
        let config = Config { holds_markers: false, prunes: false, dense_limit: 1 << 8 };
        let (trie, _) = Automaton::new(Words::new(&keys, &[], [].into_iter()), &[], config);
        let nodes = trie.len();
        let mut rules = Rules {
            trie,
            values: Words::new(&values, &[], [].into_iter()),
            depths: vec![0; nodes],
            keys: vec![0; nodes],
            rests: vec![0; nodes],
            settled: vec![NONE; nodes],
            replacements: Vec::new(),
        };
        for parent in 0..nodes {
            for child in rules.trie.children(parent) {
                rules.add(parent, child);
            }
        }
        for node in (1..nodes).rev() {
            rules.keys[node] = match rules.trie.whole_word(node) {
                Some(key) => key as u32,
                None => rules.keys[rules.trie.children(node).start],
            };
        }
        Ok(rules)
    }

    /// Computes the items of `depths`, `rests` and `settled` for the node `child`. This needs the items of all nodes
    /// with shorter texts.
    fn add(&mut self, parent: usize, child: usize) {
        self.depths[child] = self.depths[parent] + 1;
        if let Some(key) = self.trie.whole_word(child) {
            self.settled[child] = self.note(Replacement { before: NONE, start: 0, key: key as u32 });
            return;
        }
        let byte = self.trie.label(child);
        let (mut last, mut at) = (self.settled[parent], self.rests[parent]);
        // The text of `at` is the end of the text of `parent`. In the text of `child`, which has one byte more, it
        // begins at the offset `start`.
        let mut start = self.depths[parent] - self.depths[at as usize];
        if parent == 0 {
            return;
        }
        loop {
            if let Some(next) = self.trie.child(at as usize, byte) {
                self.rests[child] = next as u32;
                break;
            }
            if at == 0 {
                break;
            }
            for replacement in self.replacements(at) {
                last = self.note(Replacement { before: last, start: start + replacement.start, ..replacement });
            }
            let rest = self.rests[at as usize];
            start += self.depths[at as usize] - self.depths[rest as usize];
            at = rest;
        }
        self.settled[child] = last;
    }

    fn note(&mut self, replacement: Replacement) -> u32 {
        self.replacements.push(replacement);
        self.replacements.len() as u32
    }

    /// Returns the keys in the text of `node` that are replaced if there is no child for the next byte, in the order in
    /// which they stand in the text.
    fn replacements(&self, node: u32) -> impl Iterator<Item = Replacement> + use<> {
        let mut all = Vec::new();
        let mut last = self.settled[node as usize];
        while last != NONE {
            let replacement = self.replacements[last as usize - 1];
            all.push(replacement);
            last = replacement.before;
        }
        all.into_iter().rev()
    }

    pub(crate) fn trie(&self) -> &Automaton {
        &self.trie
    }

    pub(super) fn key(&self, index: usize) -> &str {
        self.trie.words().text(index)
    }

    pub(super) fn value(&self, index: usize) -> &str {
        self.values.text(index)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The text of a node.
    pub(super) fn text(&self, node: u32) -> &str {
        match node {
            0 => "",
            node => &self.key(self.keys[node as usize] as usize)[..self.depth(node)],
        }
    }

    /// Returns the index of a key that begins with the text of `node`. For the root, returns 0.
    pub(super) fn key_at(&self, node: u32) -> usize {
        if node == 0 { 0 } else { self.keys[node as usize] as usize }
    }

    /// Returns the node that stands for the first `depth` bytes of the key with the index `key`. Returns `None` if
    /// there is no such key or node, or if the node has no children. A stream is never at a node without children,
    /// because it replaces the key at once.
    pub(super) fn node_of(&self, key: usize, depth: usize) -> Option<u32> {
        if depth == 0 {
            return Some(0);
        }
        let text = if key < self.len() { self.key(key).get(..depth)? } else { return None };
        let node = text.bytes().try_fold(0, |node, byte| self.trie.child(node, byte))?;
        (!self.trie.children(node).is_empty()).then_some(node as u32)
    }

    #[inline]
    pub(super) fn depth(&self, node: u32) -> usize {
        self.depths[node as usize] as usize
    }

    /// Reads `byte`, and moves `node` to the next node. Calls `replace` for each key that is now certain to be
    /// replaced. The first argument of `replace` is the number of bytes from the beginning of the key to the end of
    /// `byte`, and the second is the index of the key.
    #[inline]
    pub(super) fn step<E>(
        &self,
        node: &mut u32,
        byte: u8,
        mut replace: impl FnMut(usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if let Some(child) = self.trie.child(*node as usize, byte) {
                *node = child as u32;
                if self.trie.children(child).is_empty() {
                    self.settle(node, 0, replace)?; // no key is longer
                }
                return Ok(());
            }
            if *node == 0 {
                return Ok(());
            }
            self.settle(node, 1, &mut replace)?;
        }
    }

    /// Called when the text of `node` cannot become a longer key. Calls `replace` for each key in this text, as `step`
    /// does. Then moves `node` to the node for the rest of the text. `behind` is the number of bytes that were read
    /// after the text of `node`.
    #[inline]
    pub(super) fn settle<E>(
        &self,
        node: &mut u32,
        behind: usize,
        mut replace: impl FnMut(usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let length = self.depth(*node) + behind;
        match self.settled[*node as usize] {
            NONE => {}
            last => match self.replacements[last as usize - 1] {
                Replacement { before: NONE, start, key } => replace(length - start as usize, key as usize)?,
                _ => {
                    for Replacement { start, key, .. } in self.replacements(*node) {
                        replace(length - start as usize, key as usize)?;
                    }
                }
            },
        }
        *node = self.rests[*node as usize];
        Ok(())
    }
}
