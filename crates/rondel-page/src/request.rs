//! A request as data, and its parameters.

use crate::answer::{Problem, nanos};

/// Maximum length of a path or of the parameters, in bytes.
const LONGEST: usize = 8 << 10;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method: `GET`, `HEAD` or `POST`.
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
    /// The parameters behind the question mark, as they were sent.
    pub query: String,
    /// The header `Host`, or the authority of the target.
    pub host: Option<String>,
    /// The header `Origin`.
    pub origin: Option<String>,
    /// The header `Authorization`.
    pub authorization: Option<String>,
    /// The header `Content-Type`.
    pub content_type: Option<String>,
    /// The header `Last-Event-ID`.
    pub last_event: Option<String>,
    /// The header `If-None-Match`.
    pub known_tag: Option<String>,
    /// Whether the client accepts gzip.
    pub accepts_gzip: bool,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A request for a path, with its parameters behind a question mark.
    pub fn get(target: &str) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Request {
            method: "GET".to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            ..Request::default()
        }
    }

    /// A request with a body in JSON.
    pub fn post(path: &str, body: &str) -> Request {
        Request {
            method: "POST".to_owned(),
            path: path.to_owned(),
            content_type: Some("application/json".to_owned()),
            body: body.as_bytes().to_vec(),
            ..Request::default()
        }
    }

    /// Whether it is for the API, for which it may need a token, and not for a file of the page. A path that encodes
    /// this part is for neither.
    pub(crate) fn is_api(&self) -> bool {
        self.path.starts_with("/api/")
    }

    /// The decoded parts of the path. A decoded part may contain a slash: it never names a file.
    pub(crate) fn segments(&self) -> Result<Vec<String>, Problem> {
        if self.path.len() > LONGEST || self.query.len() > LONGEST {
            return Err(Problem::new(414, format!("a path and its parameters have at most {LONGEST} bytes")));
        }
        let path = self.path.strip_prefix('/').ok_or_else(|| Problem::wrong("a path begins with /"))?;
        path.split('/').map(|part| decode(part, false)).collect()
    }

    /// The parameters.
    pub(crate) fn query(&self) -> Result<Query, Problem> {
        let parts = self.query.split('&').filter(|part| !part.is_empty());
        let parameter = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decode(name, true)?, decode(value, true)?))
        };
        Ok(Query(parts.map(parameter).collect::<Result<_, Problem>>()?))
    }
}

/// Decodes percent-encoding.
fn decode(text: &str, plus_is_space: bool) -> Result<String, Problem> {
    let wrong = || Problem::wrong(format!("cannot decode `{}`", text.chars().take(100).collect::<String>()));
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let [high, low, after @ ..] = after else { return Err(wrong()) };
                rest = after;
                let digit = |byte: &u8| char::from(*byte).to_digit(16).ok_or_else(wrong);
                (digit(high)? * 16 + digit(low)?) as u8
            }
            b'+' if plus_is_space => b' ',
            other => *other,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// The parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// The value of a parameter; `None` without it, and if it is empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    }

    /// A whole number within bounds.
    pub(crate) fn integer(
        &self,
        name: &str,
        least: usize,
        most: usize,
        default: usize,
    ) -> Result<usize, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| Problem::wrong(format!("`{name}` is a whole number from {least} to {most}")))
    }

    /// A time in seconds, as nanoseconds.
    pub(crate) fn time(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| Problem::wrong(format!("`{name}` is a time in seconds")))?;
        Ok(Some(nanos(number)))
    }

    /// One of several words.
    pub(crate) fn word<'w>(&self, name: &str, words: &[&'w str]) -> Result<Option<&'w str>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match words.iter().find(|word| **word == text) {
            Some(word) => Ok(Some(word)),
            None => Err(Problem::wrong(format!("`{name}` is one of {}", words.join(", ")))),
        }
    }

    /// Position of the first entry and number of entries of a list.
    pub(crate) fn part(&self) -> Result<(usize, usize), Problem> {
        Ok((self.integer("offset", 0, 1 << 40, 0)?, self.integer("limit", 1, 1000, 100)?))
    }

    /// A time range that ends at `reached` unless the request names another end.
    pub(crate) fn range(&self, reached: Option<i64>) -> Result<(i64, i64), Problem> {
        let until = self.time("until")?.or(reached).unwrap_or(0);
        let from = self.time("from")?.unwrap_or_else(|| until.saturating_sub(600_000_000_000));
        match from < until {
            true => Ok((from, until)),
            false => Err(Problem::wrong("`from` must be before `until`")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths_are_decoded() {
        let segments = |path: &str| Request::get(path).segments();
        assert_eq!(segments("/api/v1/properties/a%20b%2Fc").unwrap(), ["api", "v1", "properties", "a b/c"]);
        assert_eq!(segments("/%2e%2e/%C3%A4").unwrap(), ["..", "ä"]);
        for wrong in ["", "x", "/%", "/%1", "/%zz", "/%ff"] {
            assert_eq!(segments(wrong).unwrap_err().status, 400, "{wrong}");
        }
        assert_eq!(segments(&format!("/{}", "a".repeat(LONGEST))).unwrap_err().status, 414);
    }

    #[test]
    fn parameters_have_bounds() {
        let query = |text: &str| Request::get(&format!("/?{text}")).query().unwrap();
        let all = query("limit=7&search=a+b%3D&from=1.5&sort=name&empty=&flag");
        assert_eq!((all.text("search"), all.text("empty"), all.text("flag")), (Some("a b="), None, None));
        assert_eq!(all.part().unwrap(), (0, 7));
        assert_eq!(all.time("from").unwrap(), Some(1_500_000_000));
        assert_eq!(all.word("sort", &["worst", "name"]).unwrap(), Some("name"));
        assert_eq!(all.range(Some(2_000_000_000)).unwrap(), (1_500_000_000, 2_000_000_000));
        for wrong in ["limit=0", "limit=1001", "limit=-1", "limit=x", "offset=-1"] {
            assert_eq!(query(wrong).part().unwrap_err().status, 400, "{wrong}");
        }
        assert!(query("from=nan").time("from").is_err() && query("from=inf").time("from").is_err());
        assert!(query("sort=best").word("sort", &["worst"]).is_err());
        assert!(query("from=5&until=5").range(None).is_err());
    }
}
