//! Remarks of a summary about messages other than omitted ones.

use crate::text::counted;

use crate::session::Session;

impl Session {
    /// The remarks of all topics, as sentences.
    pub(in crate::session) fn remarks(&self) -> Vec<String> {
        let parts = [self.elements_left_out(), self.historical_values(), self.unwatched_nodes()];
        parts.concat()
    }

    /// The elements of arrays that were left out of conditions and measures.
    fn elements_left_out(&self) -> Vec<String> {
        let decoders = self.route.decoders().iter().map(|decoder| decoder.left_out());
        let topics = self.shared.topics.iter().zip(self.shared.omitted.left_out()).zip(decoders);
        let sentence = |((topic, in_lines), decoded): ((&crate::TopicStatistics, &u64), u64)| {
            let count = in_lines + decoded;
            let elements = counted(count, "element of an array is", "elements of arrays are");
            let were = if count == 1 { "was" } else { "were" };
            (count > 0).then(|| format!("{}: {elements} NaN or null, and {were} left out", topic.name))
        };
        topics.filter_map(sentence).collect()
    }

    /// The historical values that were left out.
    fn historical_values(&self) -> Vec<String> {
        let topics = self.shared.topics.iter().zip(self.route.decoders());
        let sentences = topics.filter_map(|(topic, decoder)| {
            let (count, names) = decoder.historical();
            let values = counted(count, "historical value was", "historical values were");
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            (count > 0).then(|| format!("{}: {values} left out, of {}", topic.name, names.join(", ")))
        });
        sentences.collect()
    }

    /// The nodes of Sparkplug whose losses do not show.
    fn unwatched_nodes(&self) -> Vec<String> {
        let unwatched = self.numbers.iter().flat_map(|numbers| numbers.unwatched());
        let topics = self.shared.topics.iter().zip(unwatched).filter(|(_, count)| *count > 0);
        let sentences = topics.map(|(topic, count)| {
            let nodes = counted(count as u64, "node", "nodes");
            let name = &topic.name;
            format!(
                "{name}: losses of {nodes} do not show, as the address does not match all of their messages"
            )
        });
        sentences.collect()
    }
}
