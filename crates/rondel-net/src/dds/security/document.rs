//! The documents of DDS Security: governance and permissions, as far as `run` and `validate` report them.

use quick_xml::Reader;
use quick_xml::events::Event;
use rondel_event::calendar::{self, Precision};

use super::Protection;

/// Maximum nesting of elements; the documents of the specification have seven levels.
const DEPTH: usize = 32;

/// Protection of a kind of message: `NONE`, `SIGN`, `ENCRYPT`, and the last two with an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Signed,
    Encrypted,
}

impl Kind {
    fn parse(text: &str) -> Result<Kind, String> {
        match text {
            "NONE" => Ok(Kind::None),
            "SIGN" | "SIGN_WITH_ORIGIN_AUTHENTICATION" => Ok(Kind::Signed),
            "ENCRYPT" | "ENCRYPT_WITH_ORIGIN_AUTHENTICATION" => Ok(Kind::Encrypted),
            _ => Err(format!("'{text}' is no kind of protection: NONE, SIGN or ENCRYPT")),
        }
    }
}

/// The rules of a governance document.
#[derive(Debug, Default)]
pub(super) struct Governance(Vec<Rule>);

/// Rule for some domains.
#[derive(Debug, Default)]
struct Rule {
    /// First and last domain of each range.
    domains: Vec<(u32, u32)>,
    admits_unknown: Option<bool>,
    rtps: Option<Kind>,
    /// Protection of messages and of their payloads, by rule of topics.
    topics: Vec<(Option<Kind>, Option<Kind>)>,
}

impl Governance {
    /// Parses a document.
    ///
    /// # Errors
    /// A description of the mistake.
    pub(super) fn parse(text: &str) -> Result<Governance, String> {
        let mut governance = Governance::default();
        walk(text, |path, text| {
            let Some(place) = path.iter().position(|name| name == "domain_rule") else { return Ok(()) };
            let inner: Vec<&str> = path[place + 1..].iter().map(String::as_str).collect();
            let Some(text) = text else {
                match inner[..] {
                    [] => governance.0.push(Rule::default()),
                    ["topic_access_rules", "topic_rule"] => {
                        if let Some(rule) = governance.0.last_mut() {
                            rule.topics.push((None, None));
                        }
                    }
                    _ => {}
                }
                return Ok(());
            };
            match governance.0.last_mut() {
                Some(rule) => rule.read(&inner, text),
                None => Ok(()),
            }
        })?;
        Ok(governance)
    }

    /// Returns the protection of a domain.
    ///
    /// # Errors
    /// The document has no rule for it.
    pub(super) fn protection(&self, domain: u32) -> Result<Protection, String> {
        let has = |rule: &&Rule| rule.domains.iter().any(|(first, last)| (first..=last).contains(&&domain));
        let rule = self.0.iter().find(has).ok_or_else(|| {
            format!("it has no `domain_rule` for the domain {domain}: add it to `domains`, and sign the document again")
        })?;
        let is = |kind: Option<Kind>| kind == Some(Kind::Encrypted);
        let all_topics = !rule.topics.is_empty()
            && rule.topics.iter().all(|(messages, payload)| is(*messages) || is(*payload));
        Ok(Protection {
            encrypted: is(rule.rtps) || all_topics,
            authenticated: rule.admits_unknown == Some(false),
            ends: None,
        })
    }
}

impl Rule {
    /// Reads a value by its path in the rule.
    fn read(&mut self, path: &[&str], text: &str) -> Result<(), String> {
        let number = || text.parse::<u32>().map_err(|_| format!("'{text}' is no domain"));
        match path {
            ["domains", "id"] => self.domains.push((number()?, number()?)),
            ["domains", "id_range", "min"] => self.domains.push((number()?, u32::MAX)),
            ["domains", "id_range", "max"] => {
                if let Some((_, last)) = self.domains.last_mut() {
                    *last = number()?;
                }
            }
            ["allow_unauthenticated_participants"] => {
                self.admits_unknown = Some(matches!(&*text.to_ascii_lowercase(), "true" | "1"));
            }
            ["rtps_protection_kind"] => self.rtps = Some(Kind::parse(text)?),
            ["topic_access_rules", "topic_rule", "metadata_protection_kind"] => {
                if let Some((messages, _)) = self.topics.last_mut() {
                    *messages = Some(Kind::parse(text)?);
                }
            }
            ["topic_access_rules", "topic_rule", "data_protection_kind"] => {
                if let Some((_, payload)) = self.topics.last_mut() {
                    *payload = Some(Kind::parse(text)?);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the end of the last grant of a permissions document that has begun; times are seconds since the Unix epoch.
///
/// # Errors
/// A description of the mistake; also if no grant is valid `now`.
pub(super) fn end(text: &str, now: i64) -> Result<i64, String> {
    let (mut last, mut reason) = (None, "it has no grant with a `validity`".to_owned());
    let mut begins = None;
    walk(text, |path, text| {
        let Some(text) = text else { return Ok(()) };
        match path.last().map(String::as_str) {
            Some("not_before") => begins = Some((seconds(text)?, text.to_owned())),
            Some("not_after") => {
                let ends = seconds(text)?;
                match begins.take() {
                    _ if ends < now => reason = format!("the permissions ended at {text}"),
                    Some((begins, text)) if begins > now => {
                        reason = format!("the permissions begin at {text}");
                    }
                    _ => last = last.max(Some(ends)),
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    last.ok_or(reason)
}

/// Calls `each` with the path of every element, in lower case: without a text at its beginning, and with its text.
fn walk(
    text: &str,
    mut each: impl FnMut(&[String], Option<&str>) -> Result<(), String>,
) -> Result<(), String> {
    let invalid = |error: &dyn std::fmt::Display| format!("it is not XML: {error}");
    let mut reader = Reader::from_str(text.trim_start());
    let mut path: Vec<String> = Vec::new();
    loop {
        match reader.read_event().map_err(|error| invalid(&error))? {
            Event::Start(start) => {
                if path.len() == DEPTH {
                    return Err(format!("elements are nested more than {DEPTH} deep"));
                }
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).to_ascii_lowercase());
                each(&path, None)?;
            }
            Event::End(_) => _ = path.pop(),
            Event::Text(inner) => {
                let inner = inner.decode().map_err(|error| invalid(&error))?;
                if !inner.trim().is_empty() && !path.is_empty() {
                    each(&path, Some(inner.trim()))?;
                }
            }
            Event::Eof if path.is_empty() => return Ok(()),
            Event::Eof => return Err("it ends within an element".to_owned()),
            _ => {}
        }
    }
}

/// Parses a time such as `2027-01-31T12:00:00Z`, in seconds since the Unix epoch. Without a zone it is UTC.
fn seconds(text: &str) -> Result<i64, String> {
    let time = calendar::parse(text.as_bytes()).filter(|time| time.precision == Precision::Second);
    time.map(|time| time.seconds)
        .ok_or_else(|| format!("'{text}' is no time: write it as 2027-01-31T12:00:00Z"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const GOVERNANCE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<dds><domain_access_rules>\
        <domain_rule><domains><id>7</id><id_range><min>20</min><max>30</max></id_range></domains>\
        <allow_unauthenticated_participants>FALSE</allow_unauthenticated_participants>\
        <rtps_protection_kind>SIGN</rtps_protection_kind><topic_access_rules>\
        <topic_rule><topic_expression>*</topic_expression><metadata_protection_kind>NONE</metadata_protection_kind>\
        <data_protection_kind>ENCRYPT</data_protection_kind></topic_rule></topic_access_rules></domain_rule>\
        <domain_rule><domains><id_range><min>100</min></id_range></domains>\
        <allow_unauthenticated_participants>true</allow_unauthenticated_participants>\
        <rtps_protection_kind>ENCRYPT_WITH_ORIGIN_AUTHENTICATION</rtps_protection_kind></domain_rule>\
        </domain_access_rules></dds>";

    #[test]
    fn governance_determines_the_protection_of_a_domain() {
        let governance = Governance::parse(GOVERNANCE).unwrap();
        let all = Protection { encrypted: true, authenticated: true, ends: None };
        for domain in [7, 20, 30] {
            assert_eq!(governance.protection(domain), Ok(all), "{domain}");
        }
        for domain in [100, 230] {
            let open = Protection { encrypted: true, authenticated: false, ends: None };
            assert_eq!(governance.protection(domain), Ok(open), "{domain}");
        }
        for domain in [0, 8, 31] {
            assert!(governance.protection(domain).unwrap_err().contains(&format!("the domain {domain}")));
        }
        // One unencrypted topic is enough for others to read along.
        let open = GOVERNANCE.replace(
            "</topic_rule>",
            "</topic_rule><topic_rule><metadata_protection_kind>SIGN</metadata_protection_kind>\
             <data_protection_kind>NONE</data_protection_kind></topic_rule>",
        );
        let open = Governance::parse(&open).unwrap().protection(7);
        assert_eq!(open, Ok(Protection { encrypted: false, authenticated: true, ends: None }));
        for (from, to) in [("SIGN<", "SING<"), ("<id>7<", "<id>seven<"), ("</dds>", ""), ("<dds>", "<dds")] {
            assert!(Governance::parse(&GOVERNANCE.replace(from, to)).is_err(), "{from}");
        }
        assert!(Governance::parse(&"<a>".repeat(100)).is_err());
    }

    #[test]
    fn times_of_permissions_are_parsed() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(seconds("2000-02-29T12:30:01"), Ok(951_827_401));
        assert_eq!(seconds("2026-11-23T18:00:00.5+02:00"), Ok(1_795_449_600));
        assert_eq!(seconds("2026-11-23T14:30:00-01:30"), Ok(1_795_449_600));
        for wrong in
            ["", "T", "2026-11-23", "2026-13-01T00:00:00", "2026-01-01T00:00:00+2", "2026-1é-01T00:00:00"]
        {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        let grant = |from: &str, to: &str| {
            format!(
                "<grant><validity><not_before>{from}</not_before><not_after>{to}</not_after></validity></grant>"
            )
        };
        let (past, now) = (grant("1990-01-01T00:00:00", "1991-01-01T00:00:00"), 1_000_000_000);
        let future = grant("2030-01-01T00:00:00", "2031-01-01T00:00:00");
        let good = grant("1990-01-01T00:00:00", "2031-01-01T00:00:00");
        let end = |grants: &str| end(&format!("<dds>{grants}</dds>"), now);
        assert_eq!(end(&past), Err("the permissions ended at 1991-01-01T00:00:00".to_owned()));
        assert_eq!(end(&future), Err("the permissions begin at 2030-01-01T00:00:00".to_owned()));
        assert_eq!(end(&format!("{past}{good}{future}")), Ok(1_924_992_000));
        assert!(end("").is_err() && end("<grant>").is_err());
    }
}
