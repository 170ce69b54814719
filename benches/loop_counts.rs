//! Counts how often `Repeat` finds a loop in ordinary texts, where it should find none, by kind of text and setting.
//!
//! `cargo bench -p stopscan-benches --bench loop_counts -- FOLDER…` reads all text files of the folders, each text once,
//! and the texts of `model_texts.rs`. After a loop is found, the rest of it is skipped, so that each loop counts once.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use stopscan::{Loops, Repeat};

mod model_texts;

/// The settings of `Repeat`: `count`, `max_period` and `min_length`.
const SETTINGS: [(usize, usize, usize); 9] = [
    (4, 1024, 32),
    (4, 1024, 64),
    (4, 1024, 96),
    (4, 1024, 128),
    (4, 1024, 256),
    (4, 1024, 512),
    (4, 1024, 1024),
    (3, 1024, 256),
    (10, 1024, 256),
];
const DEFAULT: usize = 4;

/// The most characters to read of one kind of text. With more, that kind would dominate the total.
const MOST_OF_A_KIND: usize = 60_000_000;
const MOST_OF_A_FILE: u64 = 4_000_000;

#[derive(Default)]
struct Kind {
    files: usize,
    characters: usize,
    fires: [usize; SETTINGS.len()],
    files_with_any: usize,
}

/// Counts the loops in `text`. The text after a loop belongs to the same loop as long as it has the same period.
fn loops(repeat: &Repeat, text: &str) -> usize {
    let (mut loops, mut rest, mut count) = (Loops::new(repeat), text, 0);
    while let Some(found) = loops.feed(rest, true) {
        let start = found.sequence.char_indices().rev().nth(found.period - 1).map_or(0, |(at, _)| at);
        let period = found.sequence[start..].chars().cycle();
        let goes_on = rest[found.end..].chars().zip(period).take_while(|(new, old)| new == old);
        rest = &rest[found.end + goes_on.map(|(new, _)| new.len_utf8()).sum::<usize>()..];
        count += 1;
    }
    count
}

/// Returns the kind of text in a file, or `None` if the file is not read.
fn kind(path: &Path) -> Option<&'static str> {
    if path.to_string_lossy().contains("/man/") {
        return Some("manuals (man)");
    }
    let name = path.file_name()?.to_string_lossy().into_owned();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    Some(match name.rsplit_once('.').map_or(name, |(_, extension)| extension) {
        "py" | "pyi" | "pyx" | "pxd" => "Python",
        "c" | "h" | "cpp" | "hpp" | "cc" | "cu" | "cuh" => "C, C++, CUDA",
        "rs" => "Rust",
        "js" | "ts" | "css" => "JavaScript, CSS",
        "pl" | "pm" => "Perl",
        "md" | "rst" | "txt" | "Debian" | "copyright" | "LICENSE" | "METADATA" | "changelog" | "NEWS" => {
            "prose (md, rst, txt)"
        }
        "html" => "HTML",
        "json" | "jsonl" | "yaml" | "yml" | "toml" => "JSON, YAML, TOML",
        "csv" | "tsv" | "dat" => "tables of data",
        "f90" | "f" => "Fortran",
        _ => return None,
    })
}

fn text(path: &Path) -> Option<String> {
    if path.metadata().ok()?.len() > MOST_OF_A_FILE {
        return None;
    }
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let bytes =
        if packed { Command::new("gzip").arg("-dc").arg(path).output().ok()?.stdout } else { fs::read(path).ok()? };
    String::from_utf8(bytes).ok().filter(|text| text.len() >= 200 && !text.contains('\0'))
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![folder], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

impl Kind {
    fn count(&mut self, text: &str, repeats: &[Repeat]) {
        self.files += 1;
        self.characters += text.chars().count();
        for (number, repeat) in repeats.iter().enumerate() {
            let found = loops(repeat, text);
            self.fires[number] += found;
            self.files_with_any += (number == DEFAULT && found > 0) as usize;
        }
    }

    fn row(&self, name: &str) -> String {
        let million = self.characters as f64 / 1e6;
        let rates = self.fires.map(|fires| format!("{:.2}", fires as f64 / million)).join(" | ");
        format!("| {name} | {} | {million:.1} | {rates} | {} |", self.files, self.files_with_any)
    }
}

fn main() {
    let folders: Vec<_> =
        env::args().skip(1).filter(|argument| !argument.starts_with("--")).map(PathBuf::from).collect();
    let repeats = SETTINGS.map(|(count, most, least)| Repeat::new(count, most, least).expect("they are in range"));
    let (mut kinds, mut seen) = (BTreeMap::<&str, Kind>::new(), HashSet::new());
    for path in folders.into_iter().flat_map(files) {
        let Some(name) = kind(&path) else { continue };
        let kind = kinds.entry(name).or_default();
        let Some(text) = (kind.characters < MOST_OF_A_KIND).then(|| text(&path)).flatten() else { continue };
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if seen.insert(hasher.finish()) {
            kind.count(&text, &repeats);
        }
    }
    let settings = SETTINGS.map(|(count, _, least)| format!("{count}, {least}")).join(" | ");
    println!(
        "| fires in a million characters | files | million characters | {settings} | files where it fires by default |"
    );
    println!("|---|{}", "---:|".repeat(SETTINGS.len() + 3));
    let mut all = Kind::default();
    for (name, kind) in &kinds {
        println!("{}", kind.row(name));
        all.files += kind.files;
        all.characters += kind.characters;
        all.files_with_any += kind.files_with_any;
        all.fires.iter_mut().zip(kind.fires).for_each(|(all, fires)| *all += fires);
    }
    println!("{}\n", all.row("all"));
    println!("\n| text | characters | {settings} |\n|---|---:|{}", ":---:|".repeat(SETTINGS.len()));
    for (name, text) in model_texts::all() {
        let fires = repeats.map(|repeat| if loops(&repeat, &text) == 0 { "" } else { "fires" }).join(" | ");
        println!("| {name} | {} | {fires} |", text.chars().count());
    }
}
