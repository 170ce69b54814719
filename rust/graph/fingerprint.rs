use super::Graph;
use crate::automaton::WordKind;
use crate::snapshot::Fingerprint;

impl Graph {
    /// What sets have in common that read text alike, in every process and version.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut print = Fingerprint::new();
        print.number(self.stay.into());
        print.texts(self.stops().of_kind(WordKind::Hidden));
        print.texts(self.stops().of_kind(WordKind::Visible));
        print.texts(self.patterns.patterns.iter().map(String::as_str));
        print.number(self.patterns.max_held.map_or(0, |max_held| max_held.saturating_add(1)));
        if let Some(repeat) = &self.repeat {
            [repeat.count(), repeat.max_period(), repeat.min_length()].into_iter().for_each(|part| print.number(part));
        }
        for (number, node) in self.nodes.iter().enumerate() {
            print.text(&node.name);
            print.number(node.live.into());
            print.texts(self.markers(number as u32));
            for lead in &node.leads {
                print.number(lead.node as usize * 2 + usize::from(lead.kept));
            }
        }
        print
    }
}
