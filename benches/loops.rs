//! Times the detection of loops (`Repeat`) and, for comparison, `feed` without detection, by kind of text and setting,
//! and on the texts that cost most. `cargo bench -p stopscan-benches --bench loops [-- PART OF A TEXT'S NAME]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use stopscan::{Loops, Repeat, StopScanner, StopSet};

#[path = "../tests/rust/worst_texts.rs"]
mod worst_texts;

const PROSE: &str = concat!(include_str!("../LICENSE"), include_str!("../DESIGN.md"), include_str!("../docs/rust.md"));
const CODE: &str = concat!(
    include_str!("../rust/stopscan/automaton/mod.rs"),
    include_str!("../rust/stopscan/patterns/threads.rs"),
    include_str!("../rust/stopscan/text.rs"),
    include_str!("../rust/stopscan/stream/output.rs"),
    include_str!("../rust/stopscan/graph/mod.rs"),
    include_str!("../rust/stopscan/tokens/decoder.rs"),
    include_str!("../tests/python/core/reference.py"),
);
const CHINESE: &str = "停止序列告诉模型在哪里结束回答文本是一小段到达的所以匹配可能跨越好几我们你他这个时候中国人大学生工作问题发展\
    经济社会技术方法研究数据系统程序代码语言分析结果信息因为但是如果可以没有已经开始通过进行需要使用";
const STOPS: [&str; 4] = ["</s>", "<|im_end|>", "\n\nHuman:", "###"];
const LENGTH: usize = 200_000;
const ROUNDS: usize = 15;
const PART: usize = 500;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// A text of random characters of `alphabet`. If `skewed`, the first characters are more frequent.
    fn text(&mut self, alphabet: &str, skewed: bool) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut place = || match skewed {
            true => {
                let limit = 1 + self.below(letters.len());
                self.below(limit)
            }
            false => self.below(letters.len()),
        };
        (0..LENGTH).map(|_| letters[place()]).collect()
    }
}

/// Deltas as long as tokens: 4.6 characters on average, 1.9 in Chinese.
fn deltas(text: &str) -> Vec<&str> {
    let (mut random, mut deltas, mut rest) = (Random(7), Vec::new(), text);
    while !rest.is_empty() {
        let bytes = [1, 2, 3, 4, 4, 5, 5, 6, 7, 9][random.below(10)];
        let end = (bytes..rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
        let (delta, after) = rest.split_at(end);
        deltas.push(delta);
        rest = after;
    }
    deltas
}

/// Returns the nanoseconds per delta. All deltas are read in each of `ROUNDS` rounds, each time by a new reader, which
/// `round` makes. A round is divided into parts, and each part is timed. For each part, the fastest round counts,
/// because other work on the machine disturbs only some parts of a round.
fn time<R: FnMut(&str)>(deltas: &[&str], round: impl Fn() -> R) -> f64 {
    let mut least = vec![Duration::MAX; deltas.len().div_ceil(PART)];
    for _ in 0..ROUNDS {
        let mut read = round();
        for (deltas, least) in deltas.chunks(PART).zip(&mut least) {
            let start = Instant::now();
            deltas.iter().for_each(|delta| read(black_box(delta)));
            *least = start.elapsed().min(*least);
        }
    }
    least.iter().sum::<Duration>().as_nanos() as f64 / deltas.len() as f64
}

fn main() {
    let repeats = [(4, 1024, 256), (4, 1024, 64), (4, 65_536, 256), (3, 1024, 32)]
        .map(|(count, max_period, min_length)| Repeat::new(count, max_period, min_length).expect("they are in range"));
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut texts = vec![
        ("prose", PROSE.into()),
        ("code", CODE.into()),
        ("Chinese", Random(1).text(CHINESE, true)),
        ("base64", Random(2).text(letters, false)),
    ];
    texts.extend(worst_texts::NAMED.iter().map(|(name, text)| (*name, text(LENGTH))));
    print!("text | feed, ns a delta");
    for repeat in &repeats {
        print!(" | {}, {}, {}", repeat.count(), repeat.max_period(), repeat.min_length());
    }
    println!("\nin each: ns a delta on top of feed, ns a character\n");
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    for (name, text) in texts.iter().filter(|(name, _)| name.contains(&wanted)) {
        measure(name, text, &repeats);
    }
}

fn measure(name: &str, text: &str, repeats: &[Repeat]) {
    let (deltas, characters) = (deltas(text), text.chars().count() as f64);
    let set = StopSet::new(STOPS).expect("they compile");
    let empty = time(&deltas, || |delta: &str| _ = black_box(delta.len()));
    let feed = time(&deltas, || {
        let mut scanner = StopScanner::new(&set);
        move |delta: &str| _ = black_box(scanner.feed(delta))
    });
    print!("{name} | {:.1}", feed - empty);
    for repeat in repeats {
        let a_delta = time(&deltas, || {
            let mut loops = Loops::new(repeat);
            // The argument `false` says that no loop may complete, so the search goes on to the end of the text.
            move |delta: &str| _ = black_box(loops.feed(delta, false))
        }) - empty;
        print!(" | {a_delta:.1}, {:.2}", a_delta * deltas.len() as f64 / characters);
    }
    println!();
}
