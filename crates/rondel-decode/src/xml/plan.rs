//! Plan for the elements and attributes of a message that are read.

use rondel_event::{Condition, Countable, Named, Path, Projection, Read, Segment, Test, Value, ValueType};

use crate::fields::{Fields, Want};

/// Name of the member with the text of an element that has attributes or elements, too.
pub(super) const TEXT: &str = "text";

/// Name of the member with the value of an element whose parts are read, too: no element has an empty name.
const OWN: &str = "";

/// Conversion of the text of an element or attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// Only its presence is read.
    #[default]
    None,
    /// `true`, `false`, `1` or `0`.
    Bool,
    /// A number, or a text such as a date.
    Number,
    /// The text itself.
    Text,
}

/// Element or attribute that is read; elements of one name have the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Elements and attributes in it, by their local names.
    pub(super) keys: Vec<(Box<str>, u32)>,
    pub(super) form: Form,
    /// Whether it becomes an array, even if there is only one.
    pub(super) is_array: bool,
    /// Whether its length is read, of either kind.
    has_length: bool,
    /// Whether it is the event time.
    pub(super) is_event_time: bool,
}

impl Node {
    /// Returns the member that is the text of the element itself.
    pub(super) fn text(&self) -> Option<u32> {
        self.key(TEXT.as_bytes())
    }

    /// Returns the member with this local name.
    pub(super) fn key(&self, name: &[u8]) -> Option<u32> {
        self.keys.iter().find(|(key, _)| key.as_bytes() == name).map(|(_, node)| *node)
    }

    /// Returns the name of the member for its own value, if that is one: see [`Plan::separate`].
    pub(super) fn own(&self) -> Option<&'static str> {
        self.is_both().then_some(OWN)
    }

    /// Whether both its own value and parts of it are read.
    fn is_both(&self) -> bool {
        self.form != Form::None && !self.keys.is_empty()
    }
}

/// Elements and attributes of a message that are read; the outermost element is the first.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    nodes: Vec<Node>,
}

impl Plan {
    /// The outermost element.
    pub(super) const ROOT: u32 = 0;

    pub(super) fn new(fields: &Fields<'_>) -> Plan {
        let mut plan = Plan { nodes: vec![Node::default()] };
        plan.merge(Plan::ROOT, fields);
        for node in &mut plan.nodes {
            // A single element is an array of one, unless it is read as a text.
            node.is_array |= node.has_length && node.form != Form::Text;
        }
        plan
    }

    pub(super) fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut self.nodes[at as usize]
    }

    /// Returns the member with this name, adding it if it is missing.
    fn member(&mut self, at: u32, name: &str) -> u32 {
        if let Some(known) = self.node(at).key(name.as_bytes()) {
            return known;
        }
        let new = self.nodes.len() as u32;
        self.nodes.push(Node::default());
        self.node_mut(at).keys.push((name.into(), new));
        new
    }

    /// Adds these reads of an element or attribute.
    fn merge(&mut self, at: u32, fields: &Fields<'_>) {
        for (key, below) in &fields.keys {
            let member = self.member(at, key);
            self.merge(member, below);
        }
        for (_, below) in fields.indices.iter().chain(&fields.ends) {
            self.merge_element(at, below);
        }
        for (named, below) in &fields.named {
            self.merge_element(at, &of_name(named));
            self.merge_element(at, below);
        }
        for ((array, named), below) in &fields.parallel {
            let names = self.member(at, &named.key().to_string());
            self.merge_element(names, &of_name(&named.of_names()));
            let array = self.member(at, array);
            self.merge_element(array, below);
        }
        for want in &fields.reads {
            if let Want::Elements(quantifier, conditions, _) = want {
                let element = Fields::of_element(*quantifier, conditions).unwrap_or_default().0;
                self.merge_element(at, &element);
            }
            let node = self.node_mut(at);
            node.form = node.form.max(form(want));
            node.has_length |= matches!(want, Want::Length(_, None | Some(Countable::Array)));
            node.is_event_time |= matches!(want, Want::EventTime);
        }
    }

    /// Adds these reads of the elements of an array.
    fn merge_element(&mut self, at: u32, fields: &Fields<'_>) {
        self.node_mut(at).is_array = true;
        self.merge(at, fields);
    }

    /// Returns the paths in the message as it is converted: the value of an element whose parts are read, too, is a member
    /// of it.
    pub(super) fn separate(
        &self,
        projection: &Projection,
        time: Option<&Path>,
    ) -> (Projection, Option<Path>) {
        let mut projection = projection.clone();
        for field in &mut projection.fields {
            let is_value = match &mut field.read {
                Read::Elements(_, conditions) | Read::Witness(_, conditions) => {
                    if let Some(array) = self.find(Plan::ROOT, &field.path) {
                        self.separate_conditions(array, conditions);
                    }
                    false
                }
                Read::Value(_) | Read::Number(_) | Read::IsNan | Read::LengthOf(Countable::Text) => true,
                Read::Presence | Read::Length | Read::LengthOf(Countable::Array) | Read::Table(_) => false,
            };
            self.separate_path(Plan::ROOT, &mut field.path, is_value);
        }
        let time = time.cloned().map(|mut path| {
            self.separate_path(Plan::ROOT, &mut path, true);
            path
        });
        (projection, time)
    }

    fn separate_conditions(&self, array: u32, conditions: &mut [Condition]) {
        for Condition { path, test, .. } in conditions {
            self.separate_path(array, path, *test != Test::Present);
        }
    }

    /// Changes a path from a node on, which leads to a value of the node or to another read of it.
    fn separate_path(&self, from: u32, path: &mut Path, is_value: bool) {
        let mut at = Some(from);
        for segment in &mut path.0 {
            at = at.and_then(|node| self.step(node, segment));
            if let (Segment::Named(named), Some(array)) = (segment, at)
                && !named.is_parallel
            {
                self.separate_conditions(array, std::slice::from_mut(&mut named.condition));
            }
        }
        if is_value && at.is_some_and(|node| self.node(node).is_both()) {
            path.0.push(Segment::Key(OWN.into()));
        }
    }

    fn find(&self, from: u32, path: &Path) -> Option<u32> {
        path.0.iter().try_fold(from, |node, segment| self.step(node, segment))
    }

    /// Returns the node after a segment of a path; elements of an array have the node of the array.
    fn step(&self, node: u32, segment: &Segment) -> Option<u32> {
        match segment {
            Segment::Key(key) => self.node(node).key(key.as_bytes()),
            Segment::Index(_) | Segment::FromEnd(_) | Segment::Named(_) => Some(node),
        }
    }
}

/// Returns the reads that find an element with a name.
fn of_name(named: &Named) -> Fields<'_> {
    Fields::of_name(named).unwrap_or_default().0
}

/// Returns the conversion that a read needs.
fn form(want: &Want<'_>) -> Form {
    match want {
        Want::Value(ValueType::Bool, _) | Want::Test(_, Test::Equals(Value::Bool(_))) => Form::Bool,
        Want::Value(ValueType::String, _)
        | Want::Test(_, Test::Equals(Value::String(_)) | Test::OtherText(_))
        | Want::Length(_, Some(Countable::Text)) => Form::Text,
        Want::Value(..) | Want::Exact(_) | Want::Number(..) | Want::IsNan(_) => Form::Number,
        Want::EventTime | Want::Element => Form::Number,
        Want::Test(_, Test::Number(..) | Test::Integer(..) | Test::Equals(_)) => Form::Number,
        Want::Test(_, Test::Present) | Want::Presence(_) | Want::Length(..) | Want::Elements(..) => {
            Form::None
        }
    }
}
