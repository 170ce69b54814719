//! Reads the decoder that a `tokenizer.json` describes. Refuses a decoder that does not make text from single tokens.

use super::file::Step;

/// The way in which a decoder makes text from tokens.
pub(super) enum Decoding {
    /// Each token is bytes, in GPT-2's spelling.
    ByteLevel,
    /// Each token is a piece of text, or a byte of a character.
    Pieces(Pieces),
}

/// A decoder whose tokens are pieces of text: what it changes in each piece, and whether it drops a space at the
/// beginning of the text.
#[derive(Default)]
pub(super) struct Pieces {
    replacements: Vec<(String, String)>,
    /// The character that stands for a space, such as `▁`, if the decoder drops this character from the first token.
    pub(super) dropped: Option<String>,
    pub(super) byte_fallback: bool,
    /// Whether a leading space of the text is left out.
    pub(super) strips: bool,
}

impl Decoding {
    /// Reads the steps of a decoder, which must make text from single tokens. The error names a step that does not fit
    /// into such a decoder.
    pub(super) fn of(decoder: Option<&Step>) -> Result<Decoding, String> {
        let decoder = decoder.ok_or("the file has no decoder, so tokens would be joined with spaces")?;
        let mut steps = Vec::new();
        flatten(decoder, &mut steps);
        match &steps[..] {
            // The step Fuse joins all tokens. After ByteLevel, it changes nothing. Fuse before ByteLevel is refused,
            // because ByteLevel would then decode the whole text at once: a single token that is not in GPT-2's
            // spelling would change all of it.
            [first, rest @ ..] if first.kind == "ByteLevel" && rest.iter().all(|step| step.kind == "Fuse") => {
                Ok(Decoding::ByteLevel)
            }
            _ => Pieces::of(&steps).map(Decoding::Pieces),
        }
    }
}

/// Appends `step` to `steps`. If `step` is a sequence, appends all steps in it, and in the sequences inside it.
fn flatten<'a>(step: &'a Step, steps: &mut Vec<&'a Step>) {
    match &*step.kind {
        "Sequence" => step.decoders.iter().for_each(|inner| flatten(inner, steps)),
        _ => steps.push(step),
    }
}

impl Pieces {
    /// Reads the decoder's steps. They must have this order, and each may be missing: any number of Replace and
    /// Metaspace steps; ByteFallback; Fuse; and, only after Fuse, a Strip of the first space. The error names the first
    /// step that does not fit.
    fn of(steps: &[&Step]) -> Result<Pieces, String> {
        let mut pieces = Pieces::default();
        let replaces = |step: &&&Step| matches!(&*step.kind, "Replace" | "Metaspace");
        let count = steps.iter().take_while(replaces).count();
        let (replacing, mut rest) = steps.split_at(count);
        replacing.iter().try_for_each(|step| pieces.replace(step))?;
        if let [first, others @ ..] = rest
            && first.kind == "ByteFallback"
        {
            (pieces.byte_fallback, rest) = (true, others);
        }
        if let [fuse, others @ ..] = rest
            && fuse.kind == "Fuse"
        {
            rest = others;
            if let [strip] = rest
                && strip.kind == "Strip"
                && (&*strip.content, strip.start, strip.stop) == (" ", 1, 0)
                && pieces.dropped.is_none()
            {
                (pieces.strips, rest) = (true, &[]);
            }
        }
        match rest.first() {
            None => Ok(pieces),
            Some(step) => Err(step.kind.clone()),
        }
    }

    fn replace(&mut self, step: &Step) -> Result<(), String> {
        if step.kind == "Replace" {
            let literal = step.pattern.as_ref().and_then(|pattern| pattern.literal.clone());
            let literal = literal.filter(|literal| !literal.is_empty()).ok_or("Replace of a regular expression")?;
            self.replacements.push((literal, step.content.clone()));
            return Ok(());
        }
        // Files from before 2024 have `add_prefix_space` instead of `prepend_scheme`.
        let prepends = step.prepend_scheme.as_deref().unwrap_or("always") != "never";
        if prepends && step.add_prefix_space != Some(false) {
            self.dropped = Some(step.replacement.clone());
        }
        self.replacements.push((step.replacement.clone(), " ".into()));
        Ok(())
    }

    pub(super) fn text(&self, token: &str) -> String {
        self.replacements.iter().fold(token.into(), |text, (old, new)| text.replace(old, new))
    }

    /// Returns the text that `token` has as the first token of a stream, if it differs from the usual text by more than
    /// a leading space. Otherwise returns `None`.
    pub(super) fn first(&self, token: &str) -> Option<String> {
        let dropped = self.dropped.as_ref()?;
        let differs = token.starts_with(' ') || token.chars().skip(1).any(|character| dropped.contains(character));
        differs.then(|| {
            let without =
                |text: String, (old, new): &(String, String)| text.replace(old, if old == dropped { "" } else { new });
            self.replacements.iter().fold(token.into(), without)
        })
    }

    /// Whether `token` is a byte token only at the start of a text. An example is `▁<0x0A>`: at the start, the decoder
    /// leaves out the space `▁`, and the byte token `<0x0A>` remains.
    pub(super) fn is_byte_at_start(&self, token: &str) -> bool {
        let dropped = self.dropped.as_ref().and_then(|dropped| token.strip_prefix(&**dropped));
        dropped.is_some_and(|rest| self.byte(rest).is_some())
    }

    /// Returns the byte of a piece such as `<0x0A>`. Also accepts `<0x+A>`, as the decoder ByteFallback does.
    pub(super) fn byte(&self, text: &str) -> Option<u8> {
        let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
        (self.byte_fallback && digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
    }
}
