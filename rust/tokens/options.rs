/// What a [`TokenScanner`](crate::TokenScanner) or [`TokenSegmenter`](crate::TokenSegmenter) is to know beside the
/// stops.
///
/// ```
/// use stopscan::TokenOptions;
///
/// let options = TokenOptions { eos_token_ids: vec![2], max_tokens: Some(100), ..TokenOptions::default() };
/// assert!(options.skip_special_tokens);
/// ```
#[derive(Clone, Debug)]
pub struct TokenOptions {
    /// Tokens that end the stream; their text is not emitted.
    pub stop_token_ids: Vec<u32>,
    /// Tokens that end the stream as the end of the text; theirs is not emitted.
    pub eos_token_ids: Vec<u32>,
    /// In so many tokens neither stops nor these tokens count. A stop that completes later does, though it began there.
    pub min_tokens: usize,
    /// The stream ends with so many tokens.
    pub max_tokens: Option<usize>,
    /// Whether special tokens have no text. A marker that is one opens or closes its region all the same.
    pub skip_special_tokens: bool,
    /// What the stream continues: it decides on a leading space, and the stream may complete its last character.
    pub prompt_token_ids: Vec<u32>,
}

impl Default for TokenOptions {
    fn default() -> TokenOptions {
        TokenOptions {
            stop_token_ids: Vec::new(),
            eos_token_ids: Vec::new(),
            min_tokens: 0,
            max_tokens: None,
            skip_special_tokens: true,
            prompt_token_ids: Vec::new(),
        }
    }
}
