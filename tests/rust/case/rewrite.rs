use arbitrary::{Arbitrary, Result, Unstructured};
use stopscan::{RewriteSet, Rewriter};

use crate::reference::rewrite::rewritten;

const ALPHABETS: [&str; 7] = ["ab", "a", "abc", "aé🤦", "🤦🤷éè", "ab<>1", "a日本"];

/// The keys of a set with their replacements, and the calls of one stream.
#[derive(Clone, Debug)]
pub struct Case {
    pub pairs: Vec<(String, String)>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub enum Step {
    Feed(String),
    /// Continue with a copy of the stream.
    Copy,
    /// Continue with another stream, which is restored from a snapshot.
    Move,
    Flush,
    Reset,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let alphabet: Vec<char> = u.choose(&ALPHABETS)?.chars().collect();
        let longest = *u.choose(&[2, 6, 12])?;
        let mut pairs: Vec<(String, String)> = Vec::new();
        for _ in 0..u.int_in_range(0..=8)? {
            let key = text(u, &alphabet, longest)?;
            if !key.is_empty() && pairs.iter().all(|(other, _)| *other != key) {
                let value = if u.ratio(1, 8)? { key.clone() } else { text(u, &['X', 'a', 'é'], 3)? };
                pairs.push((key, value));
            }
        }
        let mut steps = Vec::new();
        while !u.is_empty() && steps.len() < 30 {
            steps.push(match u.int_in_range(0..=19)? {
                0 => Step::Copy,
                1 => Step::Move,
                2 => Step::Flush,
                3 => Step::Reset,
                4..=8 if !pairs.is_empty() => Step::Feed(u.choose(&pairs)?.0.clone()),
                9 => Step::Feed(text(u, &alphabet, 40)?),
                _ => Step::Feed(text(u, &alphabet, 5)?),
            });
        }
        Ok(Case { pairs, steps })
    }
}

fn text(u: &mut Unstructured<'_>, alphabet: &[char], longest: usize) -> Result<String> {
    (0..u.int_in_range(0..=longest)?).map(|_| u.choose(alphabet).copied()).collect()
}

impl Case {
    /// Feeds the stream to the library and to the reference, a simple program. Panics if their outputs or held texts
    /// differ after a call. Returns whether a key was replaced.
    pub fn check(&self) -> bool {
        let set = RewriteSet::new(self.pairs.iter().map(|(key, value)| (key, value))).expect("no key is empty");
        let mut rewriter = Rewriter::new(&set);
        let (mut read, mut out, mut replaced) = (String::new(), String::new(), false);
        for step in &self.steps {
            match step {
                Step::Feed(delta) => {
                    let idle = rewriter.held().is_empty();
                    let safe = rewriter.feed(delta);
                    let same = std::ptr::eq(safe, delta.as_str());
                    out += safe;
                    read += delta;
                    let whole = idle && rewriter.held().is_empty();
                    let untouched = !self.pairs.iter().any(|(key, value)| key != value && delta.contains(key.as_str()));
                    assert!(delta.is_empty() || if same { idle } else { !(whole && untouched) }, "{self:?} {delta:?}");
                }
                Step::Copy => rewriter = rewriter.clone(),
                Step::Move => {
                    let mut other = Rewriter::new(&set);
                    other.restore(&rewriter.snapshot()).expect("the set is the same");
                    rewriter = other;
                }
                Step::Flush => {
                    out += rewriter.flush();
                    replaced |= self.check_whole(&set, &read, &out);
                    (read, out) = (String::new(), String::new());
                }
                Step::Reset => {
                    rewriter.reset();
                    (read, out) = (String::new(), String::new());
                }
            }
            let (expected, held) = rewritten(&self.pairs, &read, false);
            assert_eq!((out.as_str(), rewriter.held()), (expected.as_str(), held.as_str()), "{self:?} {read:?}");
        }
        out += rewriter.flush();
        assert_eq!(rewriter.held(), "");
        assert_eq!(rewriter.flush(), "");
        replaced | self.check_whole(&set, &read, &out)
    }

    fn check_whole(&self, set: &RewriteSet, read: &str, out: &str) -> bool {
        let (expected, _) = rewritten(&self.pairs, read, true);
        assert_eq!(out, expected, "{self:?} {read:?}");
        assert_eq!(set.rewrite(read), expected, "{self:?} {read:?}");
        expected != read
    }
}
