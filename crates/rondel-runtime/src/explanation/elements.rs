//! Elements of messages as time points of instances.
//!
//! A message may have several elements with one name, each a time point of the instance of that name. The last one stands
//! at the place of the message, and the others before it.

use rondel_engine::{Monitor, TermValue};
use rondel_event::Value;

use super::Explainer;
use super::history::Place;
use crate::text::{parameters_text, value_text};

impl Explainer {
    /// Notes for each instance and message the last element that names the instance.
    pub(super) fn note_elements(&mut self, monitor: &Monitor) {
        self.last_elements.clear();
        for term in monitor.term_values() {
            let part = self.parts.get(term.property as usize - self.properties.len());
            let (Some(element), Some(step), Some(part)) = (term.element, term.step, part) else { continue };
            for (property, _) in &part.named {
                let key = parameters_text(&monitor.key_of_term(term));
                let last = self.last_elements.entry((*property, step, key)).or_default();
                *last = element.max(*last);
            }
        }
    }

    /// The place of a report or value at a place, if its event is this element.
    pub(super) fn at_element(&self, property: usize, key: &str, place: Place, element: Option<u32>) -> Place {
        let (Some(element), Some(step)) = (element, place.step()) else { return place };
        let last = self.last_elements.get(&(property, step, key.to_owned()));
        if last.is_some_and(|last| element < *last) { place.at_element(element) } else { place }
    }
}

/// The element that a value is the name of, as a text for people: `[3] "wrist"`.
pub(super) fn element_text(term: &TermValue) -> Option<Value> {
    let name = value_text(term.value.as_ref()?);
    Some(Value::String(format!("[{}] {name}", term.element?).into()))
}
