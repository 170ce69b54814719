/// The ids of the tokens that end a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    bits: u64,
    /// The stop tokens, and those that end the text.
    stop: Box<[u32]>,
    eos: Box<[u32]>,
}

impl Ends {
    pub(crate) fn new(stop: &[u32], eos: &[u32]) -> Ends {
        let (stop, eos) = (sorted(stop), sorted(eos));
        let bits = stop.iter().chain(eos.iter()).fold(0, |bits, &id| bits | Ends::bit(id));
        Ends { bits, stop, eos }
    }

    /// A bit for each id, as its lowest six bits say: most ids are told apart by it.
    #[cfg(feature = "python")]
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    #[inline(always)]
    pub(crate) fn bit(id: u32) -> u64 {
        1 << (id % 64)
    }

    #[inline(always)]
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.bits & Ends::bit(id) != 0 && (self.is_stop(id) || self.eos.binary_search(&id).is_ok())
    }

    pub(crate) fn ids(&self) -> (&[u32], &[u32]) {
        (&self.stop, &self.eos)
    }

    pub(crate) fn is_stop(&self, id: u32) -> bool {
        self.stop.binary_search(&id).is_ok()
    }
}

fn sorted(ids: &[u32]) -> Box<[u32]> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids.into()
}
