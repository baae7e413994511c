//! Names of topics and nodes.

use rondel_event::AddressPattern;

use super::Ros2Error;

/// Length limit of a topic name: DDS allows 255 bytes, of which ROS 2 keeps 8 for prefixes.
const LONGEST_TOPIC: usize = 247;
/// Length limit of the name and the namespace of a node.
const LONGEST_NODE: usize = 255;

const TOPIC: &str = "a ROS 2 topic name";
const NODE: &str = "a ROS 2 node name";
const NAMESPACE: &str = "a ROS 2 namespace";

/// The prefix of topics among the topics of DDS.
const DDS_PREFIX: &str = "rt";

/// A fully qualified topic name, such as `/vehicle/status`, or one with parameters, such as `/fleet/{robot}/pose`, for
/// all topics that match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

/// A node, by its namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName {
    /// `/`, or `/a/b`.
    namespace: String,
    name: String,
}

impl TopicName {
    /// Parses a fully qualified name, which begins with `/`.
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake and, if one is obvious, the intended name.
    pub fn parse(text: &str) -> Result<TopicName, Ros2Error> {
        match mistake(text, LONGEST_TOPIC) {
            None if text.starts_with('/') => Ok(TopicName(text.to_owned())),
            None => {
                let reason = "it does not begin with /";
                Err(Ros2Error::new(text, TOPIC, reason).suggest(Some(format!("/{text}"))))
            }
            Some(reason) => Err(Ros2Error::new(text, TOPIC, reason).suggest(repaired(text, LONGEST_TOPIC))),
        }
    }

    /// Resolves a name as a node does: an absolute one (`/a`), one relative to the namespace of the node (`a`), a
    /// private one below the node (`~`, `~/a`). `{node}`, `{ns}` and `{namespace}` are replaced by the name and
    /// namespace of the node.
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake and, if one is obvious, the intended name.
    pub fn resolve(text: &str, node: &NodeName) -> Result<TopicName, Ros2Error> {
        // The suggestion is the valid full name; the text is the one written by the user.
        let written = |error| Ros2Error { text: text.chars().take(LONGEST_TOPIC).collect(), ..error };
        TopicName::parse(&absolute(text, node, false)?).map_err(written)
    }

    /// Resolves a name as by [`TopicName::resolve`]; other names in braces are parameters.
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake.
    pub fn resolve_pattern(text: &str, node: &NodeName) -> Result<TopicName, Ros2Error> {
        let whole = absolute(text, node, true)?;
        let pattern = AddressPattern::parse(&whole)
            .map_err(|fault| Ros2Error::new(text, TOPIC, format!("{}: {}", fault.message, fault.advice)))?;
        let Some(pattern) = pattern else { return TopicName::resolve(text, node) };
        // A parameter matches at least a letter.
        match mistake(&pattern.glob().replace('*', "x"), LONGEST_TOPIC) {
            None => Ok(TopicName(whole)),
            Some(reason) => Err(Ros2Error::new(text, TOPIC, reason)),
        }
    }

    /// Returns the pattern of a name with parameters.
    pub fn pattern(&self) -> Option<AddressPattern> {
        AddressPattern::parse(&self.0).ok().flatten()
    }

    /// Whether another name is this one, or matches it.
    pub fn is_met_by(&self, other: &TopicName) -> bool {
        match self.pattern() {
            None => self == other,
            Some(pattern) => pattern.captures(&other.0).is_some(),
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the topic in DDS: `rt/vehicle/status`; with parameters a pattern: `rt/fleet/*/pose`.
    pub fn dds(&self) -> String {
        match self.pattern() {
            None => format!("{DDS_PREFIX}{}", self.0),
            Some(pattern) => format!("{DDS_PREFIX}{}", pattern.glob()),
        }
    }

    /// Returns the names of the topics in DDS of a service of this name: of its requests and its replies.
    pub fn dds_service(&self) -> [String; 2] {
        [format!("rq{}Request", self.0), format!("rr{}Reply", self.0)]
    }

    /// Returns the topic of a name in DDS; `None` if it is not one of a ROS 2 topic.
    pub fn from_dds(name: &str) -> Option<TopicName> {
        TopicName::parse(name.strip_prefix(DDS_PREFIX)?).ok()
    }
}

/// Returns the name in ROS 2 of a topic in DDS; other names unchanged.
pub fn without_prefix(name: &str) -> &str {
    name.strip_prefix(DDS_PREFIX).filter(|name| name.starts_with('/')).unwrap_or(name)
}

impl std::fmt::Display for TopicName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl NodeName {
    /// Creates a node with this name in a namespace, such as `/` or `/robot1`. A namespace without the first `/` is
    /// absolute, too.
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake and, if one is obvious, the intended name.
    pub fn new(namespace: &str, name: &str) -> Result<NodeName, Ros2Error> {
        if name.contains('/') {
            return Err(Ros2Error::new(name, NODE, "it contains /, which belongs into the namespace"));
        }
        if let Some(reason) = mistake(name, LONGEST_NODE) {
            return Err(Ros2Error::new(name, NODE, reason).suggest(repaired(name, LONGEST_NODE)));
        }
        let given = namespace;
        let namespace = match given {
            "" | "/" => "/".to_owned(),
            _ if given.starts_with('/') => given.to_owned(),
            _ => format!("/{given}"),
        };
        match mistake(&namespace, LONGEST_NODE).filter(|_| namespace != "/") {
            None => Ok(NodeName { namespace, name: name.to_owned() }),
            Some(reason) => {
                Err(Ros2Error::new(given, NAMESPACE, reason).suggest(repaired(&namespace, LONGEST_NODE)))
            }
        }
    }

    /// Parses a node with its namespace: `/robot1/camera`; without `/`, a node in the namespace `/`.
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake and, if one is obvious, the intended name.
    pub fn parse(text: &str) -> Result<NodeName, Ros2Error> {
        match text.rsplit_once('/') {
            Some((namespace, name)) => NodeName::new(namespace, name),
            None => NodeName::new("/", text),
        }
    }

    /// Returns the namespace: `/`, or `/a/b`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name without the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for NodeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace.trim_end_matches('/'), self.name)
    }
}

/// Returns the fully qualified form of a name in a node. Other names in braces are kept, or are a mistake.
fn absolute(text: &str, node: &NodeName, keeps: bool) -> Result<String, Ros2Error> {
    if text.is_empty() {
        return Err(Ros2Error::new(text, TOPIC, "it is empty"));
    }
    let substituted = substituted(text, node, keeps).map_err(|reason| Ros2Error::new(text, TOPIC, reason))?;
    let namespace = node.namespace.trim_end_matches('/');
    Ok(match substituted.strip_prefix('~') {
        Some("") => format!("{namespace}/{}", node.name),
        Some(rest) if rest.starts_with('/') => format!("{namespace}/{}{rest}", node.name),
        Some(_) => return Err(Ros2Error::new(text, TOPIC, "~ is followed by something other than /")),
        None if substituted.starts_with('/') => substituted,
        None => format!("{namespace}/{substituted}"),
    })
}

/// Replaces the names in braces.
fn substituted(text: &str, node: &NodeName, keeps: bool) -> Result<String, String> {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((what, after)) = after.split_once('}') else {
            return Err("a { is not closed".to_owned());
        };
        whole.push_str(before);
        whole.push_str(match what {
            "node" => &node.name,
            "ns" | "namespace" => node.namespace.trim_end_matches('/'),
            _ if keeps => rest.get(before.len()..rest.len() - after.len()).unwrap_or_default(),
            other => {
                return Err(format!(
                    "{{{other}}} stands for nothing; the substitutions are {{node}}, {{ns}} and {{namespace}}"
                ));
            }
        });
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

/// Returns the mistake in a name, absolute or relative.
fn mistake(name: &str, longest: usize) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".to_owned());
    }
    if let Some(c) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '/')) {
        return Some(format!("it contains '{}'; letters, digits, _ and / are allowed", c.escape_debug()));
    }
    if name.ends_with('/') {
        return Some("it ends with /".to_owned());
    }
    if name.contains("//") {
        return Some("it contains //".to_owned());
    }
    if name.split('/').any(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
        return Some("a part of it begins with a digit".to_owned());
    }
    (name.len() > longest).then(|| format!("it is longer than {longest} bytes"))
}

/// Returns a similar valid name.
fn repaired(name: &str, longest: usize) -> Option<String> {
    if name.len() > longest {
        return None;
    }
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '/') { c } else { '_' };
    let name: String = name.trim().chars().map(allowed).collect();
    let part = |part: &str| {
        if part.starts_with(|c: char| c.is_ascii_digit()) { format!("_{part}") } else { part.to_owned() }
    };
    let parts: Vec<String> = name.split('/').filter(|part| !part.is_empty()).map(part).collect();
    let root = if name.starts_with('/') { "/" } else { "" };
    let name = format!("{root}{}", parts.join("/"));
    // A name of underscores only is no suggestion.
    (mistake(&name, longest).is_none() && name.contains(|c: char| c.is_ascii_alphanumeric())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(text: &str) -> NodeName {
        NodeName::parse(text).unwrap()
    }

    #[test]
    fn names_are_resolved_as_a_node_does() {
        for (text, of, expected) in [
            ("/a/b", "/robot1/camera", "/a/b"),
            ("a/b", "/robot1/camera", "/robot1/a/b"),
            ("a/b", "camera", "/a/b"),
            ("~", "/robot1/camera", "/robot1/camera"),
            ("~/image", "/robot1/camera", "/robot1/camera/image"),
            ("~/image", "camera", "/camera/image"),
            ("{node}/image", "/robot1/camera", "/robot1/camera/image"),
            ("{ns}/image", "/robot1/camera", "/robot1/image"),
            ("/x{namespace}/{node}", "/robot1/camera", "/x/robot1/camera"),
            ("_hidden/a", "camera", "/_hidden/a"),
        ] {
            let name = TopicName::resolve(text, &node(of)).unwrap();
            assert_eq!(name.as_str(), expected, "{text} of {of}");
        }
    }

    #[test]
    fn mistakes_come_with_the_intended_name() {
        for (text, expected) in [
            ("", "'' is not a ROS 2 topic name: it is empty"),
            ("a", "'a' is not a ROS 2 topic name: it does not begin with /; did you mean '/a'?"),
            ("/a/", "'/a/' is not a ROS 2 topic name: it ends with /; did you mean '/a'?"),
            ("/a//b", "'/a//b' is not a ROS 2 topic name: it contains //; did you mean '/a/b'?"),
            (
                "/a/1b",
                "'/a/1b' is not a ROS 2 topic name: a part of it begins with a digit; did you mean '/a/_1b'?",
            ),
            (
                "/a-b",
                "'/a-b' is not a ROS 2 topic name: it contains '-'; letters, digits, _ and / are allowed; did you mean '/a_b'?",
            ),
            ("/", "'/' is not a ROS 2 topic name: it ends with /"),
            ("/**", "'/**' is not a ROS 2 topic name: it contains '*'; letters, digits, _ and / are allowed"),
        ] {
            assert_eq!(TopicName::parse(text).unwrap_err().to_string(), expected);
        }
        let error = TopicName::parse(&format!("/{}", "a".repeat(247))).unwrap_err();
        assert_eq!((&*error.reason, error.suggestion), ("it is longer than 247 bytes", None));
        assert!(TopicName::parse(&format!("/{}", "a".repeat(246))).is_ok());

        let camera = node("/robot1/camera");
        for (text, expected) in [
            ("~image", "'~image' is not a ROS 2 topic name: ~ is followed by something other than /"),
            (
                "a~",
                "'a~' is not a ROS 2 topic name: it contains '~'; letters, digits, _ and / are allowed; did you mean '/robot1/a_'?",
            ),
            ("{node", "'{node' is not a ROS 2 topic name: a { is not closed"),
            (
                "{x}/a",
                "'{x}/a' is not a ROS 2 topic name: {x} stands for nothing; the substitutions are {node}, {ns} and {namespace}",
            ),
        ] {
            assert_eq!(TopicName::resolve(text, &camera).unwrap_err().to_string(), expected);
        }
        for (text, expected) in [
            ("", "'' is not a ROS 2 node name: it is empty"),
            (
                "/robot-1/camera",
                "'/robot-1' is not a ROS 2 namespace: it contains '-'; letters, digits, _ and / are allowed; did you mean '/robot_1'?",
            ),
            (
                "my camera",
                "'my camera' is not a ROS 2 node name: it contains ' '; letters, digits, _ and / are allowed; did you mean 'my_camera'?",
            ),
        ] {
            assert_eq!(NodeName::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn names_have_parameters_beside_substitutions() {
        let camera = node("/robot1/camera");
        let name = |text: &str| TopicName::resolve_pattern(text, &camera);
        for (text, expected, on_dds) in [
            ("/fleet/{robot}/pose", "/fleet/{robot}/pose", "rt/fleet/*/pose"),
            ("{ns}/arm_{side}/{joint}", "/robot1/arm_{side}/{joint}", "rt/robot1/arm_*/*"),
            ("~/{part}", "/robot1/camera/{part}", "rt/robot1/camera/*"),
            ("{node}/image", "/robot1/camera/image", "rt/robot1/camera/image"),
        ] {
            let name = name(text).unwrap();
            assert_eq!((name.as_str(), &*name.dds()), (expected, on_dds), "{text}");
        }
        for (text, reason) in [
            ("/fleet/{robot/pose", "a { is not closed"),
            ("/fleet/{}/pose", "this parameter has no name: write a name in the braces: `{robot}`"),
            (
                "/fleet/{a}{b}",
                "nothing separates these parameters: write a `/` or a text between them: `{a}_{b}`",
            ),
            ("/fleet-1/{robot}", "it contains '-'; letters, digits, _ and / are allowed"),
        ] {
            assert_eq!(name(text).unwrap_err().reason, reason, "{text}");
        }
        let all = name("/fleet/{robot}/pose").unwrap();
        let is_met = |text: &str| all.is_met_by(&TopicName::parse(text).unwrap());
        assert!(is_met("/fleet/r1/pose") && !is_met("/fleet/r1/arm/pose") && !is_met("/fleet/pose"));
    }

    #[test]
    fn topics_have_a_prefix_in_dds() {
        let name = TopicName::parse("/vehicle/status").unwrap();
        assert_eq!(name.dds(), "rt/vehicle/status");
        assert_eq!(TopicName::from_dds("rt/vehicle/status"), Some(name));
        for other in ["rq/add", "rt", "rtx", "/vehicle", "ros_discovery_info", ""] {
            assert_eq!(TopicName::from_dds(other), None, "{other}");
        }
    }

    #[test]
    fn namespaces_may_lack_the_first_slash() {
        assert_eq!(NodeName::new("robot1", "camera"), NodeName::new("/robot1", "camera"));
        assert_eq!(NodeName::new("", "camera"), NodeName::new("/", "camera"));
        assert_eq!(node("/robot1/camera").to_string(), "/robot1/camera");
        assert_eq!(node("camera").to_string(), "/camera");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_suggestions_are_right(text in any::<String>(), namespace in "[/a-z0-9{}~]*") {
            if let Err(Ros2Error { suggestion: Some(suggestion), .. }) = TopicName::parse(&text) {
                let again = TopicName::parse(&suggestion);
                let absolute = Some(format!("/{suggestion}"));
                prop_assert!(again.map_or_else(|error| error.suggestion == absolute, |_| true));
            }
            _ = TopicName::from_dds(&text);
            if let Ok(node) = NodeName::new(&namespace, "n") {
                _ = TopicName::resolve(&text, &node);
                prop_assert_eq!(NodeName::parse(&node.to_string()).unwrap(), node);
            }
            _ = NodeName::parse(&text);
        }

        #[test]
        fn names_are_found_again_in_dds(text in "(/[a-z_][a-z0-9_]{0,8}){1,5}") {
            let name = TopicName::parse(&text).unwrap();
            prop_assert_eq!(TopicName::from_dds(&name.dds()).unwrap(), name);
        }
    }
}
