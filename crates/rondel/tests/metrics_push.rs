//! Metrics pushed to a collector of OpenTelemetry, and to collectors that refuse or are absent.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // the helpers are tests as well

mod support;

use support::{Folder, rondel};

/// A deployment with these settings of metrics.
fn deployment(folder: &Folder, endpoint: &str, metrics: &str) -> String {
    folder.file("p.rondel", "topic door { id: string, open: bool }\nproperty shut = not door.open\n");
    let text = format!(
        "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
         topics: {{ door: {{ source: zenoh:door, time: t }} }}\nverdicts: {{ to: stdout }}\nmetrics: {metrics}\n"
    );
    folder.file("rondel.yaml", text)
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    for (metrics, said) in [
        ("{}", "`metrics` needs `listen`, such as `listen: 127.0.0.1:9464`, or `otlp`"),
        ("{ otlp: {} }", "`otlp` needs `url`, such as `url: \"http://127.0.0.1:4318\"`"),
        ("{ otlp: { url: \"ftp://a\" } }", "`url` must begin with https:// or http://"),
        ("{ otlp: \"http://a\" }", "otlp must be a mapping"),
        ("{ otlp: { url: \"http://a\", interval: 10 } }", "`interval` must be a duration such as 15 s"),
        (
            "{ otlp: { url: \"http://a\", interval: 100 ms } }",
            "`interval` must be a duration from 1 s to 1 h, such as 15 s",
        ),
        ("{ otlp: { url: \"http://a\", interval: 2 h } }", "`interval` must be a duration from 1 s to 1 h"),
        ("{ otlp: { url: \"http://a\", headers: { Authorization: x } } }", "name an environment variable"),
        ("{ push: { url: \"http://a\" } }", "metrics has no setting 'push'; write `otlp`"),
    ] {
        let file = deployment(&folder, "tcp/127.0.0.1:1", metrics);
        rondel(["validate", &file]).expect_status(2).expect_stderr(&[said]);
    }
}

#[cfg(not(feature = "otlp"))]
#[test]
fn program_without_opentelemetry_says_so() {
    let folder = Folder::new();
    let file = deployment(&folder, "tcp/127.0.0.1:1", "{ otlp: { url: \"http://127.0.0.1:1\" } }");
    rondel(["validate", &file]).expect_status(2).expect_stderr(&["built without pushing of metrics"]);
}

#[cfg(feature = "otlp")]
mod pushed {
    use std::collections::BTreeMap;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use rondel_testkit::LIMIT;
    use serde_json::Value;

    use super::deployment;
    use super::support::network::{arguments, free_endpoint, free_port, zenoh};
    use super::support::{Folder, rondel, start_rondel};

    const ACCEPTED: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    const REFUSED: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
    const DENIED: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
    const PAUSED: &str = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 86400\r\ncontent-length: 0\r\n\r\n";

    /// A collector on loopback. It answers these texts in turn, the last of them from then on; none: never.
    struct Collector {
        url: String,
        received: Arc<Mutex<Vec<(String, Value)>>>,
    }

    impl Collector {
        fn start(answers: &'static [&'static str]) -> Collector {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let received = Arc::new(Mutex::new(Vec::new()));
            let of_thread = Arc::clone(&received);
            // Ends with the process of the test.
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let received = Arc::clone(&of_thread);
                    std::thread::spawn(move || serve(&stream.unwrap(), answers, &received));
                }
            });
            Collector { url, received }
        }

        fn received(&self) -> Vec<(String, Value)> {
            self.received.lock().unwrap().clone()
        }

        /// Waits for a request whose points fulfil a condition.
        fn wait(&self, condition: impl Fn(&BTreeMap<String, f64>) -> bool) -> Value {
            let deadline = Instant::now() + LIMIT;
            loop {
                let all = self.received();
                if let Some((_, body)) = all.iter().find(|(_, body)| condition(&points(body))) {
                    return body.clone();
                }
                let last = all.last().map(|(_, body)| points(body));
                assert!(Instant::now() < deadline, "{} requests, the last with {last:#?}", all.len());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn serve(stream: &TcpStream, answers: &[&str], received: &Mutex<Vec<(String, Value)>>) {
        let mut reader = BufReader::new(stream);
        loop {
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = text.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
                head += &line;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let mut all = received.lock().unwrap();
            all.push((head, serde_json::from_slice(&body).unwrap()));
            let answer = answers.get(all.len() - 1).or(answers.last());
            drop(all);
            let Some(answer) = answer else {
                std::thread::sleep(LIMIT);
                return;
            };
            let mut writer = stream;
            if writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    /// The values of a request by name and attributes, such as `rondel_messages topic=door`; of histograms, the counts.
    fn points(body: &Value) -> BTreeMap<String, f64> {
        let mut found = BTreeMap::new();
        for metric in body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap() {
            for kind in ["sum", "gauge", "histogram"] {
                for point in metric[kind]["dataPoints"].as_array().into_iter().flatten() {
                    let mut name = metric["name"].as_str().unwrap().to_owned();
                    for attribute in point["attributes"].as_array().unwrap() {
                        let (key, value) = (&attribute["key"], &attribute["value"]["stringValue"]);
                        name += &format!(" {}={}", key.as_str().unwrap(), value.as_str().unwrap());
                    }
                    let count = point["count"].as_str().map(|count| count.parse().unwrap());
                    let value = point["asDouble"].as_f64().or(count).unwrap();
                    assert!(found.insert(name.clone(), value).is_none(), "{name} comes twice");
                }
            }
        }
        found
    }

    fn metric<'b>(body: &'b Value, name: &str) -> &'b Value {
        let all = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        all.iter().find(|metric| metric["name"] == name).unwrap()
    }

    const MESSAGES: &str = "rondel_messages topic=door";

    #[test]
    fn collector_gets_the_figures_of_a_scrape() {
        let (folder, endpoint) = (Folder::new(), free_endpoint());
        let collector = Collector::start(&[ACCEPTED]);
        let metrics = format!(
            "{{ otlp: {{ url: \"{}\", interval: 1 s, headers: {{ X-Site: north }}, resource: {{ site: north }} }} }}",
            collector.url
        );
        let file = deployment(&folder, &endpoint, &metrics);
        let mut run = start_rondel(["run", &file, "--format", "json"]);
        run.wait_stderr("ready");
        let mut feed = start_rondel(arguments(
            &["publish", "--to", "zenoh:door", "--wait", "60"],
            &zenoh("client", &endpoint),
        ));
        for (time, open) in [(1, false), (2, true)] {
            feed.write(format!("{{\"t\":{time},\"id\":\"a\",\"open\":{open}}}\n").as_bytes());
        }
        run.take_stdout(2);
        let body = collector.wait(|points| points.get(MESSAGES) == Some(&2.0));
        let points = points(&body);
        for (name, value) in [
            ("rondel_checked_messages", 2.0),
            ("rondel_verdicts property=shut severity= verdict=violated", 1.0),
            ("rondel_violations property=shut severity=", 1.0),
            ("rondel_violated_instances property=shut severity=", 1.0),
            ("rondel_ready", 1.0),
            ("rondel_network_connected network=zenoh", 1.0),
            ("rondel_metrics_pushes result=failed", 0.0),
            ("rondel_service_seconds", 2.0),
        ] {
            assert_eq!(points.get(name), Some(&value), "{name} in {points:#?}");
        }
        assert!(points.keys().any(|name| name.starts_with("rondel_build_info version=")), "{points:#?}");
        assert!(points["process_resident_memory_bytes"] > 1e6);
        let messages = metric(&body, "rondel_messages");
        assert_eq!(messages["description"], "Messages received.");
        assert_eq!(messages["sum"]["isMonotonic"], true);
        assert_eq!(messages["sum"]["aggregationTemporality"], 2);
        let service = metric(&body, "rondel_service_seconds");
        let point = &service["histogram"]["dataPoints"][0];
        let length = |name: &str| point[name].as_array().unwrap().len();
        assert_eq!(
            (service["unit"].as_str(), length("bucketCounts")),
            (Some("s"), length("explicitBounds") + 1)
        );
        let resource = body["resourceMetrics"][0]["resource"]["attributes"].to_string();
        for name in
            ["service.name", "service.version", "service.instance.id", "host.name", "rondel.series", "site"]
        {
            assert!(resource.contains(&format!("\"key\":\"{name}\"")), "{name} in {resource}");
        }
        let (head, _) = &collector.received()[0];
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1"), "{head}");
        assert!(head.to_ascii_lowercase().contains("x-site: north"), "{head}");
        run.terminate();
        run.finish().expect_status(0);
    }

    #[test]
    fn last_push_has_the_figures_at_the_end() {
        let (folder, endpoint) = (Folder::new(), free_endpoint());
        let collector = Collector::start(&[ACCEPTED]);
        let metrics = format!("{{ otlp: {{ url: \"{}\", interval: 1 h }} }}", collector.url);
        let file = deployment(&folder, &endpoint, &metrics);
        let mut run = start_rondel(["run", &file, "--format", "json", "--count", "1"]);
        run.wait_stderr("ready");
        let mut feed = start_rondel(arguments(
            &["publish", "--to", "zenoh:door", "--wait", "60"],
            &zenoh("client", &endpoint),
        ));
        feed.write(b"{\"t\":1,\"id\":\"a\",\"open\":true}\n");
        run.finish().expect_status(0);
        let received = collector.received();
        assert_eq!(received.len(), 2, "at the start and at the end");
        assert_eq!(points(&received[1].1).get(MESSAGES), Some(&1.0));
        assert!(!points(&received[0].1).contains_key(MESSAGES), "the networks were not joined yet");
    }

    #[test]
    fn failures_are_counted_and_reported_once() {
        let (folder, endpoint) = (Folder::new(), free_endpoint());
        let collector = Collector::start(&[REFUSED, REFUSED, ACCEPTED]);
        let metrics = format!("{{ otlp: {{ url: \"{}\", interval: 1 s }} }}", collector.url);
        let file = deployment(&folder, &endpoint, &metrics);
        let mut run = start_rondel(["run", &file]);
        run.wait_stderr("metrics are pushed again, after 2 that failed");
        let points = points(
            &collector.wait(|points| points.get("rondel_metrics_pushes result=accepted") == Some(&1.0)),
        );
        assert_eq!(points["rondel_metrics_pushes result=failed"], 2.0);
        run.terminate();
        let finished = run.finish();
        finished.expect_status(0);
        assert_eq!(finished.stderr.matches("metrics are not pushed:").count(), 1, "{}", finished.stderr);
        finished.expect_stderr(&["accepted, 2 failed; the last failure: http://127.0.0.1:"]);
    }

    #[test]
    fn every_cause_is_named_and_the_summary_has_the_last() {
        let folder = Folder::new();
        for (format, summary) in [
            ("text", "metrics: 0 pushes accepted, "),
            ("json", "\"metrics_pushes\":{\"accepted\":0,\"error\":\"http://127.0.0.1:"),
        ] {
            let endpoint = free_endpoint();
            let collector = Collector::start(&[REFUSED, DENIED, REFUSED, PAUSED]);
            let metrics = format!("{{ otlp: {{ url: \"{}\", interval: 1 s }} }}", collector.url);
            let file = deployment(&folder, &endpoint, &metrics);
            let mut run = start_rondel(["run", &file, "--summary", format]);
            run.wait_stderr("nothing is sent for 300 s, the longest pause (it requests 86400 s)");
            run.terminate();
            let finished = run.finish();
            finished
                .expect_status(0)
                .expect_stderr(&["answers 401 Unauthorized; the run continues", summary]);
            let named = finished.stderr.matches("metrics are not pushed:").count();
            assert_eq!((named, collector.received().len()), (3, 4), "{}", finished.stderr);
        }
    }

    #[test]
    fn path_of_metrics_is_named_for_a_url_that_has_it() {
        let folder = Folder::new();
        for (url, said) in [
            ("http://a.example/v1/metrics", "ends with /v1/metrics, which is added to it"),
            ("http://a.example/?x=1", "contains a query; /v1/metrics is added to it"),
        ] {
            let file = deployment(&folder, "tcp/127.0.0.1:1", &format!("{{ otlp: {{ url: \"{url}\" }} }}"));
            rondel(["validate", &file]).expect_status(2).expect_stderr(&[said]);
        }
    }

    #[test]
    fn collector_that_never_answers_holds_up_neither_the_run_nor_its_end() {
        let folder = Folder::new();
        let silent = Collector::start(&[]).url;
        let absent = format!("http://127.0.0.1:{}", free_port());
        for url in [silent, absent] {
            let endpoint = free_endpoint();
            let metrics = format!("{{ otlp: {{ url: \"{url}\", interval: 1 s }} }}");
            let file = deployment(&folder, &endpoint, &metrics);
            let mut run = start_rondel(["run", &file, "--format", "json"]);
            run.wait_stderr("ready");
            let publish = ["publish", "--to", "zenoh:door", "--wait", "60"];
            let mut feed = start_rondel(arguments(&publish, &zenoh("client", &endpoint)));
            feed.write(b"{\"t\":1,\"id\":\"a\",\"open\":true}\n");
            run.take_stdout(1);
            feed.close_input();
            feed.finish().expect_status(0);
            run.terminate();
            let began = Instant::now();
            run.finish().expect_status(0);
            assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        }
    }
}
