#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::mem::take;

use stopscan::{Emit, Format, Options, Output, SegmentSet, Segments, SetBuilder, StopMatch, StopSet, Stream, Target};

/// The state of the module. Its methods are the functions of `lib.rs`.
#[derive(Default)]
pub struct State {
    buffer: Vec<u8>,
    arguments: Vec<String>,
    recipe: Recipe,
    /// Why the set cannot be made: the first error of its options.
    error: Option<String>,
    streams: Vec<Option<Box<dyn Reader>>>,
    /// The numbers of released streams. New streams get these numbers first.
    free: Vec<usize>,
    /// The output of the last call.
    pieces: Vec<Piece>,
}

impl State {
    pub fn room(&mut self, length: usize) -> *mut u8 {
        self.buffer.clear();
        self.buffer.resize(length, 0);
        self.buffer.as_mut_ptr()
    }

    pub fn shorten(&mut self, length: usize) {
        self.buffer.truncate(length);
    }

    pub fn buffer(&self) -> *const u8 {
        self.buffer.as_ptr()
    }

    pub fn begin(&mut self) {
        (self.arguments, self.recipe, self.error) = Default::default();
    }

    pub fn push(&mut self) {
        self.arguments.push(text(&self.buffer).into());
    }

    pub fn option(&mut self) {
        let mut arguments = take(&mut self.arguments).into_iter();
        let name = arguments.next().unwrap_or_default();
        if let Err(error) = self.recipe.set(&name, arguments.collect()) {
            self.error.get_or_insert(error);
        }
    }

    pub fn build(&mut self, segmenter: bool) -> i32 {
        let recipe = take(&mut self.recipe);
        let stream = match self.error.take() {
            Some(error) => Err(error),
            None if segmenter => recipe.segmenter(),
            None => recipe.scanner(),
        };
        match stream {
            Ok(stream) => self.keep(stream) as i32,
            Err(error) => {
                self.error = Some(error);
                -1
            }
        }
    }

    pub fn error(&mut self) -> usize {
        let error = self.error.take().unwrap_or_default();
        self.give(error)
    }

    pub fn copy(&mut self, stream: usize) -> usize {
        let copy = self.stream(stream).copy();
        self.keep(copy)
    }

    pub fn release(&mut self, stream: usize) {
        self.streams[stream] = None;
        self.free.push(stream);
    }

    pub fn feed(&mut self, stream: usize, armed: bool) -> usize {
        let delta = take(&mut self.buffer);
        self.pieces = self.stream(stream).feed(&text(&delta), armed);
        self.pieces.len()
    }

    pub fn bypass(&mut self, stream: usize) -> usize {
        let passed = take(&mut self.buffer);
        self.pieces = self.stream(stream).bypass(&text(&passed));
        self.pieces.len()
    }

    pub fn flush(&mut self, stream: usize) -> usize {
        self.pieces = self.stream(stream).flush();
        self.pieces.len()
    }

    pub fn reset(&mut self, stream: usize) {
        self.stream(stream).reset();
    }

    pub fn piece_text(&mut self, index: usize) -> usize {
        let text = take(&mut self.pieces[index].text);
        self.give(text)
    }

    pub fn piece_region(&mut self, index: usize) -> usize {
        let region = take(&mut self.pieces[index].region);
        self.give(region)
    }

    pub fn piece_part(&self, index: usize) -> u32 {
        self.pieces[index].part
    }

    pub fn held(&mut self, stream: usize) -> usize {
        let held = self.stream(stream).held().to_owned();
        self.give(held)
    }

    pub fn unused(&mut self, stream: usize) -> usize {
        let unused = self.stream(stream).unused().to_owned();
        self.give(unused)
    }

    pub fn region(&mut self, stream: usize) -> usize {
        let region = self.stream(stream).region().to_owned();
        self.give(region)
    }

    pub fn has_fired(&mut self, stream: usize) -> bool {
        self.stream(stream).stop_match().is_some()
    }

    pub fn sequence(&mut self, stream: usize) -> usize {
        let sequence = self.stream(stream).stop_match().map_or("", |found| found.sequence()).to_owned();
        self.give(sequence)
    }

    pub fn pattern(&mut self, stream: usize) -> usize {
        let pattern = self.stream(stream).stop_match().and_then(|found| found.pattern()).unwrap_or("").to_owned();
        self.give(pattern)
    }

    pub fn offset(&mut self, stream: usize) -> usize {
        self.stream(stream).stop_match().map_or(0, |found| found.offset())
    }

    pub fn end(&mut self, stream: usize) -> usize {
        self.stream(stream).stop_match().map_or(0, |found| found.end())
    }

    pub fn formats(&mut self) -> usize {
        let line = |format: &Format| {
            let states: Vec<_> = format.states().iter().map(|state| state.name().to_owned()).collect();
            [format.name(), format.source(), &states.join("\t")].join("\t")
        };
        let lines: Vec<_> = Format::all().map(line).collect();
        self.give(lines.join("\n"))
    }

    fn give(&mut self, text: String) -> usize {
        self.buffer = text.into_bytes();
        self.buffer.len()
    }

    fn keep(&mut self, stream: Box<dyn Reader>) -> usize {
        let number = self.free.pop().unwrap_or(self.streams.len());
        if number == self.streams.len() {
            self.streams.push(None);
        }
        self.streams[number] = Some(stream);
        number
    }

    fn stream(&mut self, number: usize) -> &mut dyn Reader {
        self.streams[number].as_deref_mut().expect("a stream that was not released")
    }
}

/// Returns the text in a buffer. JavaScript's encoder writes valid UTF-8, so nothing is replaced.
fn text(buffer: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(buffer)
}

/// The options of a set and of a stream.
#[derive(Default)]
struct Recipe {
    stop: Vec<String>,
    visible: Vec<String>,
    patterns: Vec<String>,
    visible_patterns: Vec<String>,
    protect: Vec<(String, String)>,
    regions: Vec<(String, Vec<(String, Target)>)>,
    format: Option<&'static Format>,
    stop_in: Option<Vec<String>>,
    max_held: Option<usize>,
    options: Options,
}

impl Recipe {
    fn set(&mut self, name: &str, values: Vec<String>) -> Result<(), String> {
        let one = || match &values[..] {
            [value] => Ok(value.clone()),
            _ => Err(format!("{name}: one value is expected")),
        };
        let flag = || one()?.parse().map_err(|_| format!("{name}: true or false is expected"));
        match name {
            "stop" => self.stop = values,
            "visible" => self.visible = values,
            "patterns" => self.patterns = values,
            "visiblePatterns" => self.visible_patterns = values,
            "protect" => match <[String; 2]>::try_from(values) {
                Ok([open, close]) => self.protect.push((open, close)),
                Err(_) => return Err("protect: pairs of an opening and a closing marker are expected".into()),
            },
            "regions" => {
                let markers = values[1..].chunks_exact(2).map(|lead| (lead[0].clone(), Target::from(&lead[1])));
                self.regions.push((values[0].clone(), markers.collect()));
            }
            "format" => {
                let name = one()?;
                self.format = Some(Format::named(&name).ok_or_else(|| format!("format: there is no format {name:?}"))?);
            }
            "stopIn" => self.stop_in = Some(values),
            "maxHeld" => {
                self.max_held = Some(one()?.parse().map_err(|_| "maxHeld: a number of characters is expected")?);
            }
            "includeStop" => self.options.include_stop = flag()?,
            "startProtected" => self.options.start_protected = flag()?,
            "region" => self.options.region = Some(one()?),
            _ => return Err(format!("there is no option {name:?}")),
        }
        Ok(())
    }

    fn scanner(mut self) -> Result<Box<dyn Reader>, String> {
        let protect = take(&mut self.protect);
        self.stream(StopSet::builder().protect(protect))
    }

    fn segmenter(self) -> Result<Box<dyn Reader>, String> {
        if !self.protect.is_empty() {
            return Err("protect: a segmenter has regions or a format in its place".into());
        }
        self.stream(SegmentSet::builder())
    }

    fn stream<E: Emit>(self, builder: SetBuilder<E>) -> Result<Box<dyn Reader>, String>
    where
        for<'a> E::Output<'a>: Pieces,
    {
        if self.format.is_some() && !self.regions.is_empty() {
            return Err("format and regions exclude each other".into());
        }
        let states = self.format.map(Format::states).unwrap_or_default();
        let mut builder = builder.stop(&self.stop).visible(&self.visible);
        builder = builder.patterns(&self.patterns).visible_patterns(&self.visible_patterns);
        builder = states.iter().fold(builder, |builder, state| builder.region(state.name(), state.markers()));
        builder = self.regions.into_iter().fold(builder, |builder, (name, markers)| builder.region(name, markers));
        if let Some(regions) = self.stop_in {
            builder = builder.stop_in(regions);
        }
        if let Some(limit) = self.max_held {
            builder = builder.max_held(limit);
        }
        let stream = builder.build().and_then(|set| Stream::with_options(&set, &self.options));
        stream.map(|stream| Box::new(stream) as _).map_err(|error| error.to_string())
    }
}

/// A stream of either kind.
trait Reader {
    fn feed(&mut self, delta: &str, armed: bool) -> Vec<Piece>;
    fn bypass(&mut self, text: &str) -> Vec<Piece>;
    fn flush(&mut self) -> Vec<Piece>;
    fn reset(&mut self);
    fn copy(&self) -> Box<dyn Reader>;
    fn held(&self) -> &str;
    fn unused(&self) -> &str;
    fn region(&self) -> &str;
    fn stop_match(&self) -> Option<StopMatch<'_>>;
}

impl<E: Emit> Reader for Stream<E>
where
    for<'a> E::Output<'a>: Pieces,
{
    fn feed(&mut self, delta: &str, armed: bool) -> Vec<Piece> {
        match armed {
            true => self.feed(delta).pieces(),
            false => self.feed_unarmed(delta).pieces(),
        }
    }

    fn bypass(&mut self, text: &str) -> Vec<Piece> {
        self.bypass(text).pieces()
    }

    fn flush(&mut self) -> Vec<Piece> {
        self.flush().pieces()
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn copy(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }

    fn held(&self) -> &str {
        self.held()
    }

    fn unused(&self) -> &str {
        self.unused()
    }

    fn region(&self) -> &str {
        self.region()
    }

    fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.stop_match()
    }
}

/// A piece of safe text. In the pieces of a scanner, `region` is empty and `part` is 0.
#[derive(Default)]
struct Piece {
    region: String,
    text: String,
    part: u32,
}

trait Pieces {
    fn pieces(self) -> Vec<Piece>;
}

impl Pieces for Output<'_> {
    fn pieces(self) -> Vec<Piece> {
        vec![Piece { text: self.text.into(), ..Piece::default() }]
    }
}

impl Pieces for Segments<'_> {
    fn pieces(self) -> Vec<Piece> {
        let piece = |it: stopscan::Segment| Piece { region: it.region.into(), text: it.text.into(), part: it.part };
        self.into_iter().map(piece).collect()
    }
}
