//! A broker of Kafka on free ports of loopback, from the jars of `make test-brokers`, and an independent client.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rondel_sinks::kafka::{KafkaOptions, KafkaSink};
use rondel_testkit::{Folder, finish, free_port, notice, python};
use serde_json::Value;

use crate::messages::{Broker, wait_until};

/// Id of the cluster of every test, in base64.
const CLUSTER: &str = "cm9uZGVsLXJvbmRlbC1yb25kZQ";

/// Lines of configuration of a broker that demands a user and a password, and lets `reader` do nothing.
pub(crate) const WITH_USERS: &str = r#"sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.clients.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="admin" password="secret" user_admin="secret" user_reader="secret";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
"#;

/// A running broker, killed on drop.
pub(crate) struct Server {
    port: u16,
    has_users: bool,
    folder: Folder,
    jars: PathBuf,
    python: PathBuf,
    child: Option<Child>,
}

/// A record of a topic.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) partition: i64,
    pub(crate) key: String,
    pub(crate) headers: Value,
    pub(crate) data: String,
}

impl Stored {
    pub(crate) fn id(&self) -> String {
        self.headers["rondel-id"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    /// Starts a broker with further lines of configuration.
    ///
    /// Without the folder of its jars in `RONDEL_TEST_KAFKA`, prints that the test is skipped and returns `None`; fails the
    /// test if `RONDEL_TEST_REQUIRE_BROKER` or `CI` is set.
    pub(crate) fn start(test: &str, configuration: &str) -> Option<Server> {
        let Some(jars) = std::env::var_os("RONDEL_TEST_KAFKA").map(PathBuf::from) else {
            let message = format!("{test}: SKIPPED, NOT TESTED: there is no Kafka; run `make test-brokers`");
            let is_required =
                ["RONDEL_TEST_REQUIRE_BROKER", "CI"].iter().any(|name| std::env::var_os(name).is_some());
            assert!(!is_required, "{message}");
            notice(&message);
            return None;
        };
        let python = python(test, "kafka")?;
        let (port, controller, folder) = (free_port(), free_port(), Folder::new());
        let has_users = configuration == WITH_USERS;
        let protocol = if has_users { "SASL_PLAINTEXT" } else { "PLAINTEXT" };
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\ninter.broker.listener.name=CLIENTS\n\
             listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENTS:{protocol}\n\
             log.dirs={}\nauto.create.topics.enable=false\n\
             offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n{configuration}",
            folder.path("data")
        );
        folder.file("server.properties", text);
        let mut server = Server { port, has_users, folder, jars, python, child: None };
        let mut format = server.java("kafka.tools.StorageTool");
        format.args([
            "format",
            "--cluster-id",
            CLUSTER,
            "--config",
            &server.folder.path("server.properties"),
        ]);
        finish(&mut format, b"").expect_status(0);
        server.resume();
        Some(server)
    }

    fn java(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        // A small heap, and no compiler that takes longer than the test.
        command.args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp"]).arg(self.jars.join("*")).arg(class);
        command
    }

    /// Sends the broker a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    #[track_caller]
    fn client(&self, arguments: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/client.py");
        let mut command = Command::new(&self.python);
        command.arg(script).arg(self.address()).args(arguments);
        if self.has_users {
            command.envs([("KAFKA_USER", "admin"), ("KAFKA_PASSWORD", "secret")]);
        }
        let finished = finish(&mut command, b"");
        finished.expect_status(0);
        finished.stdout
    }

    /// Creates a topic with settings such as `partitions=3`.
    #[track_caller]
    pub(crate) fn create(&self, topic: &str, settings: &[&str]) {
        self.client(&[&["create", topic], settings].concat());
    }

    /// Returns the records of a topic, those of a partition in their order.
    #[track_caller]
    pub(crate) fn records(&self, topic: &str) -> Vec<Stored> {
        let record = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| value[name].as_str().unwrap().to_owned();
            Stored {
                partition: value["partition"].as_i64().unwrap(),
                key: text("key"),
                headers: value["headers"].clone(),
                data: text("data"),
            }
        };
        self.client(&["read", topic]).lines().map(record).collect()
    }

    pub(crate) fn options(&self, topic: &str, settings: &[(&str, &str)]) -> KafkaOptions {
        KafkaOptions {
            brokers: vec![self.address()],
            topic: topic.to_owned(),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    pub(crate) fn sink(&self, topic: &str, settings: &[(&str, &str)]) -> KafkaSink {
        KafkaSink::new(self.options(topic, settings)).unwrap()
    }
}

impl Broker for Server {
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn resume(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.path("log")).unwrap();
        let mut command = self.java("kafka.Kafka");
        command.arg(self.folder.path("server.properties"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let (port, path) = (self.port, self.folder.path("log"));
        wait_until("the broker listens", Duration::from_secs(120), || {
            let child = self.child.as_mut().unwrap();
            let is_running = child.try_wait().unwrap().is_none();
            assert!(is_running, "{}", std::fs::read_to_string(&path).unwrap_or_default());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
    }

    fn place(&self) -> String {
        self.address()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
