//! A broker of Kafka on free ports of loopback, from the jars of `make test-brokers`, and an independent client.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Folder, finish, free_port, notice, python, wait_until};

/// Id of the cluster of every test, in base64.
const CLUSTER: &str = "cm9uZGVsLXJvbmRlbC1yb25kZQ";

/// A running broker of Kafka, killed on drop.
pub struct KafkaBroker {
    port: u16,
    login: Option<(&'static str, &'static str)>,
    folder: Folder,
    jars: PathBuf,
    python: PathBuf,
    child: Option<Child>,
}

impl KafkaBroker {
    /// Lines of configuration of a broker that demands a user and a password, and lets `reader` do nothing.
    pub const WITH_USERS: &str = r#"sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.clients.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="admin" password="secret" user_admin="secret" user_reader="secret";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
"#;

    /// Starts a broker with further lines of configuration.
    ///
    /// Without the folder of its jars in `RONDEL_TEST_KAFKA`, prints that the test is skipped and returns `None`; fails
    /// the test if `RONDEL_TEST_REQUIRE_BROKER` or `CI` is set.
    pub fn start(test: &str, configuration: &str) -> Option<KafkaBroker> {
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
        let has_users = configuration == KafkaBroker::WITH_USERS;
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
        let login = has_users.then_some(("admin", "secret"));
        let mut broker = KafkaBroker { port, login, folder, jars, python, child: None };
        let mut format = broker.java("kafka.tools.StorageTool");
        format.args([
            "format",
            "--cluster-id",
            CLUSTER,
            "--config",
            &broker.folder.path("server.properties"),
        ]);
        finish(&mut format, b"").expect_status(0);
        broker.resume();
        Some(broker)
    }

    fn java(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        // A small heap, and no compiler that takes longer than the test.
        command.args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp"]).arg(self.jars.join("*")).arg(class);
        command
    }

    /// Starts the broker, again after [`KafkaBroker::kill`], and waits until it listens.
    pub fn resume(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.path("log")).unwrap();
        let mut command = self.java("kafka.Kafka");
        command.arg(self.folder.path("server.properties"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let (port, path) = (self.port, self.folder.path("log"));
        wait_until("the broker listens", || {
            let is_running = self.child.as_mut().unwrap().try_wait().unwrap().is_none();
            assert!(is_running, "{}", std::fs::read_to_string(&path).unwrap_or_default());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
    }

    /// Kills the broker.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends the broker a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Returns the address of the broker.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Runs the independent client, and returns its output.
    #[track_caller]
    fn client(&self, arguments: &[&str], input: &[u8]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("kafka/client.py");
        let mut command = Command::new(&self.python);
        command.arg(script).arg(self.address()).args(arguments);
        if let Some((user, password)) = self.login {
            command.envs([("KAFKA_USER", user), ("KAFKA_PASSWORD", password)]);
        }
        let finished = finish(&mut command, input);
        finished.expect_status(0);
        finished.stdout
    }

    /// Creates a topic with settings such as `partitions=3`.
    #[track_caller]
    pub fn create(&self, topic: &str, settings: &[&str]) {
        self.client(&[&["create", topic], settings].concat(), b"");
    }

    /// Deletes a topic.
    #[track_caller]
    pub fn delete(&self, topic: &str) {
        self.client(&["delete", topic], b"");
    }

    /// Adds partitions to a topic, up to this number.
    #[track_caller]
    pub fn grow(&self, topic: &str, partitions: u32) {
        self.client(&["grow", topic, &format!("partitions={partitions}")], b"");
    }

    /// Removes the records before an offset of a partition, as if they had expired.
    #[track_caller]
    pub fn expire(&self, topic: &str, partition: u32, offset: u64) {
        self.client(&["expire", topic, &format!("{partition}={offset}")], b"");
    }

    /// Publishes records, each a line of JSON with `value`, and possibly `key` (or `key_hex`), `headers`, `partition` and
    /// `timestamp` in milliseconds.
    #[track_caller]
    pub fn publish(&self, topic: &str, lines: &str) {
        self.client(&["publish", topic], lines.as_bytes());
    }

    /// Returns the records of a topic as lines of JSON with `partition`, `key`, `headers` and `data`, those of a
    /// partition in their order.
    #[track_caller]
    pub fn records(&self, topic: &str) -> Vec<String> {
        self.client(&["read", topic], b"").lines().map(str::to_owned).collect()
    }
}

impl Drop for KafkaBroker {
    fn drop(&mut self) {
        self.kill();
    }
}
