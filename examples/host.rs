//! The token loop of an LLM gateway's router, with a `StopScanner`: `cargo run --example host`.
//!
//! The router decodes token ids itself. A request has hidden stops, which are cut from the answer, and visible stops,
//! which stay in it. Both may be strings or token ids. After each token the router sends the safe text. At the end it
//! reports which stop of the user's list matched.

use stopscan::{StopScanner, StopSet, StopSetError};

/// The stops of a request.
#[derive(Default)]
struct StopConfig {
    stop: Vec<String>,
    visible: Vec<String>,
    stop_token_ids: Vec<u32>,
    visible_token_ids: Vec<u32>,
}

/// What the router does after a token.
#[derive(Debug, PartialEq)]
enum Step {
    /// Send this text. It may be empty while text is held.
    Text(String),
    /// Send this text, report the stop, and end the request in the engine.
    Stopped { text: String, matched: Matched },
}

#[derive(Debug, PartialEq)]
enum Matched {
    /// A stop string: its index in its list (`stop` or `visible`), and the byte offset in the text where it begins.
    Sequence {
        index: usize,
        byte_offset: usize,
    },
    Token(u32),
}

/// Decodes one stream and finds its stops. `decode`, the router's own decoder, returns the text that a token completes.
struct StopDecoder<D> {
    config: StopConfig,
    decode: D,
    scanner: StopScanner,
}

impl<D: FnMut(u32) -> String> StopDecoder<D> {
    fn new(config: StopConfig, decode: D) -> Result<StopDecoder<D>, StopSetError> {
        let set = StopSet::builder().stop(&config.stop).visible(&config.visible).build()?;
        Ok(StopDecoder { config, decode, scanner: StopScanner::new(&set) })
    }

    fn step(&mut self, token_id: u32) -> Step {
        if self.config.stop_token_ids.contains(&token_id) {
            // A hidden stop token adds no text, and after it the held text cannot become a stop string.
            return Step::Stopped { text: self.flush(), matched: Matched::Token(token_id) };
        }
        let delta = (self.decode)(token_id);
        if self.config.visible_token_ids.contains(&token_id) {
            let text = self.scanner.bypass(&delta).text.to_owned();
            return Step::Stopped { text, matched: Matched::Token(token_id) };
        }
        let output = self.scanner.feed(&delta);
        let text = output.text.to_owned();
        match output.stop_match {
            None => Step::Text(text),
            Some(found) => {
                let matched = Matched::Sequence { index: found.index(), byte_offset: found.byte_offset() };
                Step::Stopped { text, matched }
            }
        }
    }

    /// Returns the held text. Call it if the stream ends by EOS or length.
    fn flush(&mut self) -> String {
        self.scanner.flush().text.to_owned()
    }
}

const PIECES: [&str; 8] = ["The", " answer", " is", " 4", "2.", " E", "ND", "</s>"];

fn decode(token_id: u32) -> String {
    PIECES[token_id as usize].into()
}

fn main() -> Result<(), StopSetError> {
    let config = StopConfig { stop: vec!["\n\n".into(), " END".into()], ..StopConfig::default() };
    let mut decoder = StopDecoder::new(config, decode)?;
    for token_id in 0..8 {
        match decoder.step(token_id) {
            Step::Text(text) => print!("{text}"),
            Step::Stopped { text, matched } => {
                println!("{text}\n{matched:?}");
                return Ok(());
            }
        }
    }
    println!("{}", decoder.flush());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text that a client gets, and the stop that ended the stream, if any.
    fn run(config: StopConfig) -> (String, Option<Matched>) {
        let mut decoder = StopDecoder::new(config, decode).unwrap();
        let mut sent = String::new();
        for token_id in 0..8 {
            match decoder.step(token_id) {
                Step::Text(text) => sent += &text,
                Step::Stopped { text, matched } => return (sent + &text, Some(matched)),
            }
        }
        (sent + &decoder.flush(), None)
    }

    fn strings(stops: &[&str]) -> Vec<String> {
        stops.iter().map(|stop| stop.to_string()).collect()
    }

    #[test]
    fn a_hidden_stop_over_two_tokens() {
        let config = StopConfig { stop: strings(&["?", "?", "END"]), ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42. ".into(), Some(Matched::Sequence { index: 2, byte_offset: 18 })));
    }

    #[test]
    fn a_visible_stop_stays() {
        let config = StopConfig { stop: strings(&["END"]), visible: strings(&["."]), ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42.".into(), Some(Matched::Sequence { index: 0, byte_offset: 16 })));
    }

    #[test]
    fn a_hidden_stop_token_releases_what_was_held() {
        let config = StopConfig { stop: strings(&["2.!"]), stop_token_ids: vec![5], ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42.".into(), Some(Matched::Token(5))));
    }

    #[test]
    fn a_visible_stop_token_stays() {
        let config = StopConfig { visible_token_ids: vec![3], ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 4".into(), Some(Matched::Token(3))));
    }

    #[test]
    fn what_is_held_at_the_end_is_flushed() {
        let config = StopConfig { stop: strings(&["</s>!"]), ..StopConfig::default() };
        assert_eq!(run(config), (PIECES.concat(), None));
    }

    #[test]
    fn a_step_that_is_taken_back() {
        let config = StopConfig { stop: strings(&["42"]), ..StopConfig::default() };
        let mut decoder = StopDecoder::new(config, decode).unwrap();
        assert_eq!(decoder.step(3), Step::Text(" ".into()));
        // The model rejects a draft model's token, so the scanner goes back to its earlier state.
        let before = decoder.scanner.clone();
        assert!(matches!(decoder.step(4), Step::Stopped { .. }));
        decoder.scanner = before;
        assert_eq!(decoder.step(5), Step::Text("4 E".into()));
    }
}
