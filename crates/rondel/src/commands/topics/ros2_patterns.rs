//! Patterns of ROS 2, as its middleware has them.

use rondel_decode::lines::{is_matched, is_pattern};
use rondel_net::ros2;
use rondel_runtime::survey::Survey;

/// Whether a pattern is one of ROS 2.
pub(super) fn is_of_ros2(text: &str) -> bool {
    text.starts_with("ros2:")
}

/// Patterns of ROS 2, as its middleware has them.
pub(super) struct OfRos2 {
    pub(super) settings: ros2::Settings,
}

impl OfRos2 {
    /// The middleware and the domain in the environment, if a pattern is one of ROS 2.
    pub(super) fn new(patterns: &[String]) -> Result<Option<OfRos2>, String> {
        if !patterns.iter().any(|text| is_of_ros2(text)) {
            return Ok(None);
        }
        let settings = ros2::Settings::from_environment(|name| std::env::var(name).ok());
        let settings = settings.map_err(|error| format!("cannot join ROS 2: {error}"))?;
        Ok(Some(OfRos2 { settings }))
    }

    /// The name or pattern of topics with a slash before it, and without names of parameters.
    fn pattern(text: &str) -> Option<String> {
        let mut rest = text.strip_prefix("ros2:")?.trim_start_matches('/');
        let mut pattern = "/".to_owned();
        while let Some((before, (_, after))) =
            rest.split_once('{').and_then(|(before, inner)| Some((before, inner.split_once('}')?)))
        {
            pattern += before;
            pattern.push('*');
            rest = after;
        }
        Some(pattern + rest)
    }

    /// A pattern of ROS 2 as the middleware writes it.
    pub(super) fn carried(&self, text: &str) -> Option<String> {
        let pattern = OfRos2::pattern(text)?;
        Some(match self.settings.middleware {
            // A wildcard of DDS also matches slashes: further matches are left out later.
            ros2::Middleware::Dds => format!("dds:rt{}", pattern.replace("**", "*")),
            // Behind the topic come the type and its hash; Zenoh wants `**` behind them.
            ros2::Middleware::Zenoh => {
                let (topic, rest) =
                    pattern.strip_suffix("/**").map_or((&*pattern, ""), |topic| (topic, "/**"));
                format!("zenoh:{}{topic}/*/*{rest}", self.settings.domain)
            }
        })
    }

    /// Gives the topics of a survey their addresses of ROS 2, and leaves out what no pattern means.
    pub(super) fn name(&self, survey: &mut Survey, patterns: &[String]) {
        let found = survey.topics().filter_map(|(address, topic)| {
            let name = topic.name.as_ref().filter(|name| name.starts_with('/'))?;
            Some((address.to_owned(), format!("ros2:{name}")))
        });
        let found: Vec<(String, String)> = found.collect();
        let own: Vec<String> = patterns.iter().filter_map(|text| OfRos2::pattern(text)).collect();
        let is_meant = |to: &str| {
            let name = to.trim_start_matches("ros2:");
            own.iter().any(|pattern| pattern == name || is_pattern(pattern) && is_matched(pattern, name))
        };
        for (address, to) in &found {
            if is_meant(to) {
                survey.rename(address, to);
            }
        }
        if own.len() == patterns.len() {
            survey.retain(is_of_ros2);
        }
    }
}
