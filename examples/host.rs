//! A server's front end that finds stops with a `StopScanner`: `cargo run --example host`.
//!
//! The engine computes the tokens of a request, step by step. If the engine ends the request, it also says why. The
//! front end decodes the tokens, scans the text, and sends the text that is safe. When a stop fires, the front end
//! reports which stop it is. Hidden stops are cut from the answer, visible stops stay in it. A stop is a string, a
//! pattern or a token id.

use stopscan::{Options, StopMatch, StopScanner, StopSet, StopSetError};

/// The options of a request that say where its answer ends.
#[derive(Default)]
struct StopConfig {
    stop: Vec<String>,
    visible: Vec<String>,
    patterns: Vec<String>,
    stop_token_ids: Vec<u32>,
    visible_token_ids: Vec<u32>,
    /// Whether every stop string and pattern stays in the answer.
    include_stop: bool,
    /// No stop fires in the first `min_tokens` tokens.
    min_tokens: usize,
    /// The markers around the model's reasoning. Between them no stop string or pattern fires.
    reasoning: Option<(&'static str, &'static str)>,
    /// Whether the prompt ends inside the reasoning, so that the answer begins with reasoning.
    starts_in_reasoning: bool,
}

/// The message that the front end sends after a step of the engine.
#[derive(Debug, Default, PartialEq)]
struct Event {
    /// The text that is safe to send. It may be empty while text is held.
    text: String,
    /// Why the request ended. After a stop, the front end also ends the request in the engine.
    finish: Option<Finish>,
}

#[derive(Debug, PartialEq)]
enum Finish {
    /// A stop string or a pattern fired. `index` is its index in its list: `stop`, `visible` or `patterns`.
    /// `byte_offset` is where it begins in the text.
    Sequence {
        index: usize,
        byte_offset: usize,
    },
    Token(u32),
    /// The reason that the engine gave.
    Engine(&'static str),
}

impl From<StopMatch<'_>> for Finish {
    fn from(found: StopMatch<'_>) -> Finish {
        Finish::Sequence { index: found.index(), byte_offset: found.byte_offset() }
    }
}

/// Decodes one stream and finds its stops. `decode` is the front end's decoder: it returns the text that a token
/// completes.
#[derive(Clone)]
struct StopDecoder<'a, D> {
    config: &'a StopConfig,
    decode: D,
    scanner: StopScanner,
    tokens: usize,
}

impl<'a, D: FnMut(u32) -> String> StopDecoder<'a, D> {
    fn new(config: &'a StopConfig, decode: D) -> Result<StopDecoder<'a, D>, StopSetError> {
        let set = StopSet::builder().stop(&config.stop).visible(&config.visible).patterns(&config.patterns);
        let set = set.protect(config.reasoning).build()?; // a server compiles the sets of common requests once
        let options = Options::default().include_stop(config.include_stop).start_protected(config.starts_in_reasoning);
        Ok(StopDecoder { config, decode, scanner: StopScanner::with_options(&set, &options)?, tokens: 0 })
    }

    /// Reads one step of the engine: a token, or several of speculative decoding.
    fn step(&mut self, token_ids: &[u32], ended: Option<&'static str>) -> Event {
        let mut event = Event::default();
        for &token_id in token_ids {
            self.token(token_id, &mut event);
            if event.finish.is_some() {
                return event;
            }
        }
        if let Some(reason) = ended {
            self.flush(Finish::Engine(reason), &mut event);
        }
        event
    }

    fn token(&mut self, token_id: u32, event: &mut Event) {
        self.tokens += 1;
        let armed = self.tokens > self.config.min_tokens;
        if armed && self.config.stop_token_ids.contains(&token_id) {
            // The text of a hidden stop token is not sent. The held text is sent now, because no text follows it.
            return self.flush(Finish::Token(token_id), event);
        }
        let delta = (self.decode)(token_id);
        if armed && self.config.visible_token_ids.contains(&token_id) {
            event.text += self.scanner.bypass(&delta).text;
            event.finish = Some(Finish::Token(token_id));
            return;
        }
        let output = if armed { self.scanner.feed(&delta) } else { self.scanner.feed_unarmed(&delta) };
        event.text += output.text;
        event.finish = output.stop_match.map(Finish::from);
    }

    /// Ends the stream: adds the held text to the event, and `reason` as the finish. But a pattern such as `END$` may
    /// fire at the end of the text. Then this pattern is the finish.
    fn flush(&mut self, reason: Finish, event: &mut Event) {
        let output = self.scanner.flush();
        event.text += output.text;
        event.finish = Some(output.stop_match.map_or(reason, Finish::from));
    }
}

const PIECES: [&str; 8] = ["The", " answer", " is", " 4", "2.", " E", "ND", "</s>"];

fn decode(token_id: u32) -> String {
    PIECES[token_id as usize].into()
}

fn main() -> Result<(), StopSetError> {
    let config = StopConfig { stop: vec!["\n\n".into(), " END".into()], ..StopConfig::default() };
    let mut decoder = StopDecoder::new(&config, decode)?;
    for token_id in 0..8 {
        let Event { text, finish } = decoder.step(&[token_id], (token_id == 7).then_some("length"));
        print!("{text}");
        if let Some(finish) = finish {
            println!("\n{finish:?}");
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the stream twice: with one token in each step, and with all tokens in one step. Checks that the results are
    /// equal. Returns the text that a client gets, and why the stream ended.
    fn run(config: StopConfig) -> (String, Option<Finish>) {
        let at_once = StopDecoder::new(&config, decode).unwrap().step(&[0, 1, 2, 3, 4, 5, 6, 7], Some("length"));
        let mut decoder = StopDecoder::new(&config, decode).unwrap();
        let mut sent = Event::default();
        for id in 0..8 {
            let Event { text, finish } = decoder.step(&[id], (id == 7).then_some("length"));
            sent = Event { text: sent.text + &text, finish };
            if sent.finish.is_some() {
                break;
            }
        }
        assert_eq!(sent, at_once);
        (sent.text, sent.finish)
    }

    fn strings(stops: &[&str]) -> Vec<String> {
        stops.iter().map(|stop| stop.to_string()).collect()
    }

    fn sequence(index: usize, byte_offset: usize) -> Option<Finish> {
        Some(Finish::Sequence { index, byte_offset })
    }

    #[test]
    fn a_hidden_stop_over_two_tokens() {
        let config = StopConfig { stop: strings(&["?", "?", "END"]), ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42. ".into(), sequence(2, 18)));
    }

    #[test]
    fn a_visible_stop_stays() {
        let config = StopConfig { stop: strings(&["END"]), visible: strings(&["."]), ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42.".into(), sequence(0, 16)));
    }

    #[test]
    fn every_stop_stays_if_the_request_says_so() {
        let config = StopConfig { stop: strings(&["END"]), include_stop: true, ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42. END".into(), sequence(0, 18)));
    }

    #[test]
    fn a_pattern_is_a_stop() {
        let config = StopConfig { patterns: strings(&[r"\d+\.\s"]), ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is ".into(), sequence(0, 14)));
    }

    #[test]
    fn a_pattern_that_the_end_completes() {
        let config = StopConfig { patterns: strings(&["</s>$"]), ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42. END".into(), sequence(0, 21)));
    }

    #[test]
    fn a_hidden_stop_token_releases_what_was_held() {
        let config = StopConfig { stop: strings(&["2.!"]), stop_token_ids: vec![5], ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 42.".into(), Some(Finish::Token(5))));
    }

    #[test]
    fn a_visible_stop_token_stays() {
        let config = StopConfig { visible_token_ids: vec![3], ..StopConfig::default() };
        assert_eq!(run(config), ("The answer is 4".into(), Some(Finish::Token(3))));
    }

    #[test]
    fn no_stop_counts_among_the_first_tokens() {
        let stops = || StopConfig { stop: strings(&["e", " E"]), stop_token_ids: vec![1], ..StopConfig::default() };
        assert_eq!(run(stops()), ("Th".into(), sequence(0, 2)));
        assert_eq!(run(StopConfig { min_tokens: 2, ..stops() }), ("The answer is 42.".into(), sequence(1, 17)));
    }

    #[test]
    fn no_stop_string_fires_in_the_reasoning() {
        let reasoning =
            StopConfig { stop: strings(&["a", "N"]), reasoning: Some(("<think>", "2.")), ..StopConfig::default() };
        let reasoning = StopConfig { starts_in_reasoning: true, ..reasoning };
        assert_eq!(run(reasoning), ("The answer is 42. E".into(), sequence(1, 19)));
    }

    #[test]
    fn what_is_held_at_the_end_is_flushed() {
        let config = StopConfig { stop: strings(&["</s>!"]), ..StopConfig::default() };
        assert_eq!(run(config), (PIECES.concat(), Some(Finish::Engine("length"))));
    }

    #[test]
    fn a_step_that_is_taken_back() {
        let config = StopConfig { stop: strings(&["42"]), ..StopConfig::default() };
        let mut decoder = StopDecoder::new(&config, decode).unwrap();
        assert_eq!(decoder.step(&[3], None), Event { text: " ".into(), finish: None });
        // The model rejects a token that its draft model has proposed, so the decoder goes back to its earlier state.
        let before = decoder.clone();
        assert!(decoder.step(&[4], None).finish.is_some());
        decoder = before;
        assert_eq!(decoder.step(&[5], None), Event { text: "4 E".into(), finish: None });
    }
}
