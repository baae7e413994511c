//! Imports with a name: `use "limits.rondel" as limits`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use rondel_spec::{
    ImportedFile, Imports, Outcome, Outline, ParseOptions, Sources, SymbolKind, parse_sources,
};
use rondel_testkit::Random;

struct Files(BTreeMap<String, String>);

fn file(name: &str) -> ImportedFile {
    ImportedFile { path: name.into(), name: name.to_owned() }
}

impl Imports for Files {
    fn find(&self, _: &ImportedFile, written: &str) -> Result<ImportedFile, String> {
        if self.0.contains_key(written) { Ok(file(written)) } else { Err("there is no such file".to_owned()) }
    }

    fn read(&self, file: &ImportedFile) -> Result<String, String> {
        Ok(self.0[&file.name].clone())
    }
}

/// The sources of the first file.
fn load(texts: &[(&str, &str)]) -> Sources {
    let files: BTreeMap<String, String> =
        texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Sources::load(file(texts[0].0), texts[0].1.to_owned(), &Files(files))
}

fn parse(sources: &Sources) -> Outcome {
    parse_sources(sources, &ParseOptions::default(), None)
}

fn shown(texts: &[(&str, &str)]) -> String {
    let sources = load(texts);
    parse(&sources).render_in(&sources, false)
}

/// The properties of a specification without diagnostics, with their formulas.
fn formulas(texts: &[(&str, &str)]) -> Vec<String> {
    let sources = load(texts);
    let outcome = parse(&sources);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render_in(&sources, false));
    let spec = outcome.spec.unwrap();
    spec.properties.iter().map(|p| format!("{} {}", p.name, spec.print(p.formula))).collect()
}

const LIMITS: (&str, &str) = (
    "limits",
    "topic t \"/t\" { x: int, parts: [int] }
const D = 2 s
const highest = 5
let near = t.x < highest
let within(a: float, d: bound) = once[0, d] (a < highest and near)
property p for each id in t.x = near and id > 0
machine m { initial off state on off -> on when near within D }
chain c = t -> u by x within D age <= D
topic u { x: int }
test \"limits\" { at 0 s t { x: highest } expect p[5] violated }",
);

#[test]
fn causes_are_those_of_their_file() {
    let limits = (
        "limits",
        "topic t \"/t\" { x: int }
property power = t.x > 1
@because_of(power) property lit = t.x > 2",
    );
    let main = (
        "main",
        "use \"limits\" as limits
property power = limits.t.x > 5
@because_of(limits.power) property a = limits.t.x > 3
@because_of(power) property b = limits.t.x > 4",
    );
    let spec = parse(&load(&[main, limits])).spec.unwrap();
    let cause =
        |property: &rondel_spec::Property| Some(format!("{} {}", property.name, property.because_of()?));
    let mut causes: Vec<String> = spec.properties.iter().filter_map(cause).collect();
    causes.sort();
    assert_eq!(causes, ["a limits.power", "b power", "limits.lit limits.power"]);
    let unknown = (main.0, "use \"limits\" as limits\n@because_of(powr) property a = limits.t.x > 3");
    let said = shown(&[unknown, limits]);
    assert!(said.contains("unknown property 'powr'"), "{said}");
}

#[test]
fn every_kind_of_name_is_reached_by_the_import() {
    let main = "use \"limits\" as limits
topic t \"/own\" { limits: int, near: int }
const highest = 9
let near = t.near > highest and limits.near
property a = near and limits.within(limits.t.x, limits.D) and on(limits.t) and t.limits > limits.highest
property b for each id in limits.t.x = limits.t{x: 3} or any e in limits.t.parts: e > limits.highest
property d = in(limits.m, on) and once[0, limits.D] len(limits.t.parts) > 2 and t{limits: 3, limits > 2}
property e = latency(limits.c) < limits.D and count(limits.t) over 2 s > 1
property g = rye limits.t\"{x: 3}\" and exists x. limits.t{x: x}
property h = on(limits.t) -> limits.t.parts[0] > 1
chain limits.t -> limits.u by x within limits.D
assert always limits.p
assert share(limits.near) >= 0.5 between 0 s and limits.D
test \"main\" { at 0 s limits.t { x: limits.highest } at 1 s t { limits: 3 } expect limits.p[limits.highest] violated }";
    let found = formulas(&[("main", main), LIMITS]);
    let names: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap()).collect();
    let expected = [
        "limits.p",
        "limits.m",
        "limits.c",
        "limits.c_age",
        "a",
        "b",
        "d",
        "e",
        "g",
        "h",
        "limits_t_limits_u",
        "always",
        "share(limits.near)",
    ];
    assert_eq!(names, expected);
    assert!(
        found[4].contains("(once [0,2000000000] (and (< (float limits.t.x) 5.0) (< limits.t.x 5)"),
        "{}",
        found[4]
    );
    assert!(found[4].contains("(> t.near 9)"), "{}", found[4]);
}

#[test]
fn topics_keep_their_addresses() {
    let sources = load(&[("main", "use \"limits\" as l property p = l.near"), LIMITS]);
    let spec = parse(&sources).spec.unwrap();
    let topics: Vec<(&str, &str)> =
        spec.topics.iter().map(|topic| (topic.name.as_str(), topic.address.as_str())).collect();
    assert_eq!(topics, [("l.t", "/t"), ("l.u", "u")]);
}

/// A specification means the same, whether a file is imported with a name or its declarations are written with it.
#[test]
fn an_import_has_the_meaning_of_its_declarations() {
    let plain = formulas(&[("main", "use \"limits\" property a = near and within(t.x, D)"), LIMITS]);
    let named =
        formulas(&[("main", "use \"limits\" as k property a = k.near and k.within(k.t.x, k.D)"), LIMITS]);
    let without: Vec<String> = named.iter().map(|line| line.replace("k.", "")).collect();
    assert_eq!(without, plain);
}

#[test]
fn names_of_several_imports_do_not_clash() {
    let wheel = "use \"topics\" let near = speed.x < 3 property p for each id in speed.x = near and id > 0
                 assert always near test \"t\" { at 0 s speed { x: 1 } expect p[1] satisfied }";
    let found = formulas(&[
        (
            "main",
            "use \"front\" as front use \"rear\" as rear use \"topics\"
             let id = 3 let near = speed.x < id property q = near and front.near and rear.near and front.speed.x > 0",
        ),
        ("front", wheel),
        ("rear", &wheel.replace("< 3", "< 4")),
        ("topics", "topic speed { x: int }"),
    ]);
    assert_eq!(
        found,
        [
            "front.p (and (< speed.x 3) (> key0 0))",
            "rear.p (and (< speed.x 4) (> key0 0))",
            "q (and (and (< speed.x 3) (< speed.x 4)) (> speed.x 0))",
            "front.always near (< speed.x 3)",
            "rear.always near (< speed.x 4)",
        ]
    );
}

/// A file that two others import counts once: its topics are the same, however they are reached.
#[test]
fn a_file_counts_once() {
    let sources = load(&[
        ("main", "use \"a\" as a use \"b\" as b property p = a.t.x > b.t.x and a.y and b.y"),
        ("a", "use \"common\" let y = t.x > 1"),
        ("b", "use \"common\" let y = t.x > 2"),
        ("common", "topic t { x: int }"),
    ]);
    let outcome = parse(&sources);
    assert!(outcome.spec.is_some(), "{}", outcome.render_in(&sources, false));
    assert_eq!(outcome.spec.unwrap().topics.len(), 1);
    // Imported both with and without a name.
    let both = formulas(&[
        ("main", "use \"common\" use \"common\" as c property p = c.t.x > 1 and t.x < 5"),
        ("common", "topic t { x: int }"),
    ]);
    assert_eq!(both, ["p (and (> t.x 1) (< t.x 5))"]);
    // Each file gives its own names; those of an import of an import are not its own.
    let text = shown(&[
        ("main", "use \"a\" as a property p = a.common.t.x > 0 and a.t.x > 0"),
        ("a", "use \"common\" as common let y = common.t.x > 1"),
        ("common", "topic t { x: int }"),
    ]);
    assert!(text.contains("unknown topic 'a.common'") && text.contains("unknown topic 'a.t'"), "{text}");
}

#[test]
fn a_library_is_imported_with_a_name() {
    let plain = formulas(&[(
        "main",
        "use std.patterns topic m { p: bool, s: bool } property p = response(m.p, m.s, within: 2 s)",
    )]);
    let named = formulas(&[(
        "main",
        "use std.patterns as pat topic m { p: bool, s: bool } let response = m.s
         property p = pat.response(m.p, response, within: 2 s)",
    )])
    .into_iter();
    assert_eq!(named.collect::<Vec<_>>(), plain);
}

#[test]
fn a_file_with_a_name_sees_only_its_own_names() {
    let text = shown(&[
        ("main", "use \"a\" as a let limit = 3 topic t { x: int } property p = a.y and t.x > limit"),
        ("a", "topic u { x: int } let y = u.x > limit and on(t)"),
    ]);
    assert!(text.contains("unknown name 'limit'") && text.contains("unknown topic 't'"), "{text}");
    assert!(!text.contains("did you mean"), "{text}");
}

/// Specifications with mistakes in their use of imports, each with a part of its errors.
const MISTAKES: [(&str, &str); 23] = [
    (
        "use \"a\" as limits\nproperty p = near",
        "error[E0201]: unknown name 'near'\n --> main:2:14\n  |\n2 | property p = near\n  |              ^^^^\n  |\n  = help: write \
         `limits.near`: its file is imported with `as`",
    ),
    ("use \"a\" as limits property p = t.x > 1", "help: write `limits.t`: its file"),
    ("use \"a\" as limits property p = on(t)", "help: write `limits.t`: its file"),
    ("use \"a\" as limits property p = f(3)", "help: write `limits.f(…)`: its file"),
    ("use \"a\" as limits property p = once[0, D] limits.near", "help: write `limits.D`: its file"),
    ("use \"a\" as limits property p = in(m, off)", "help: write `limits.m`: its file"),
    ("use \"a\" as limits assert always q", "help: write `limits.q`: its file"),
    (
        "use \"a\" as limits test \"t\" { at 0 s limits.t { x: D } expect q violated }",
        "help: write `limits.q`: its file",
    ),
    (
        "use \"a\" as limits property p = limits.neer",
        "unknown name 'limits.neer'; did you mean 'limits.near'?",
    ),
    ("use \"a\" as limits property p = limits", "'limits' is an import: write `limits.name`"),
    ("use \"a\" as limits property p = limits . near", "'limits' is an import: write `limits.name`"),
    (
        "use \"a\" as limits topic limits { x: int } property p = limits.x > 0",
        "error[E0204]: 'limits' is declared twice",
    ),
    ("use \"a\" as limits let limits = 3 property p = limits.near", "::: main"),
    (
        "use \"a\" as limits use \"b\" as limits property p = limits.near",
        "error[E0204]: 'limits' is declared twice",
    ),
    (
        "use \"b\" use \"a\" as near property p = near.near",
        "error[E0204]: 'near' is declared twice\n --> main:1:20",
    ),
    (
        "use \"a\" as limits property p for each limits in limits.t.x = limits.near",
        "error[E0204]: 'limits' is declared twice",
    ),
    (
        "use \"a\" as limits let g(limits: topic) = limits.x > 0 property p = g(limits.t)",
        "error[E0204]: 'limits' is declared twice",
    ),
    (
        "use \"a\" as limits property p = exists limits . limits.t{x: limits}",
        "error[E0204]: 'limits' is declared twice",
    ),
    (
        "use \"a\" as limits let limits.y = 3 property p = limits.near",
        "expected the name of a `let`, found `limits.y`",
    ),
    ("use \"a\" as not property p = true", "expected the name of an import, found `not`"),
    ("use \"a\" as property near = t.x > 0", "expected the name of an import, found `property`"),
    (
        "use \"c\" use \"a\" as l property p = l.near and v",
        "error[E0204]: 'l' is the name of two imports of one specification",
    ),
    (
        "use \"a\" as main use \"d\" as d property p = main.near and d.z",
        "error[E0204]: 'near' is declared twice",
    ),
];

#[test]
fn mistakes() {
    let a = (
        "a",
        "topic t { x: int } let near = t.x > 1 const D = 2 s property q = near let f(x: int) = x > 1
        machine m { initial off off -> on when near }",
    );
    for (main, expected) in MISTAKES {
        let text = shown(&[
            ("main", main),
            a,
            ("b", "topic near { x: int }"),
            ("c", "use \"b\" as l let v = l.near.x > 1"),
            ("d", "use \"a\" topic near { x: int } let z = near.x > 1"),
        ]);
        let is_there = text.contains(expected)
            || expected == "::: main"
                && text.contains("'limits' is declared twice")
                && text.contains("first declared here");
        assert!(is_there, "{main}\n{text}");
    }
}

#[test]
fn names_lead_to_their_declarations() {
    let main = "use \"limits\" as lim\nproperty a = lim.near and lim.within(lim.t.x, lim.D) and on(lim.t)\n\
                test \"t\" { at 0 s lim.t { x: 1 } expect lim.p[1] satisfied }";
    let sources = load(&[("main", main), LIMITS]);
    let outline = Outline::of(&sources, None);
    let start = sources.main_start();
    let mut found = Vec::new();
    for (index, symbol) in outline.symbols().iter().enumerate() {
        for span in outline.uses(index).filter(|span| span.start >= start) {
            let written = &sources.text()[span.start..span.end];
            assert_eq!(written, symbol.name.rsplit('.').next().unwrap());
            let place = sources.place(symbol.span.unwrap().start);
            found.push((span.start, format!("{written} {}:{} {:?}", place.file, place.line, symbol.kind)));
        }
    }
    found.sort();
    let found: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
    let alias = "lim main:1 Import";
    let expected = [
        alias,
        "a main:2 Property",
        alias,
        "near limits:4 Definition",
        alias,
        "within limits:5 Definition",
        alias,
        "t limits:1 Topic",
        "x limits:1 Field",
        alias,
        "D limits:2 Constant",
        alias,
        "t limits:1 Topic",
        alias,
        "t limits:1 Topic",
        "x limits:1 Field",
        alias,
        "p limits:6 Property",
    ];
    assert_eq!(found, expected);
    let near = outline.symbols().iter().find(|symbol| symbol.name == "near").unwrap();
    assert_eq!((near.full_name().as_str(), near.kind), ("lim.near", SymbolKind::Definition));
    // The uses in the imported file are found too.
    let index = outline.symbols().iter().position(|symbol| symbol.name == "near").unwrap();
    assert_eq!(outline.uses(index).count(), 5);
    let members: Vec<String> = outline.members("lim").into_iter().map(|(name, _)| name).collect();
    assert!(
        ["t", "D", "highest", "near", "within", "p", "m", "c"]
            .iter()
            .all(|name| members.contains(&(*name).to_owned()))
    );
    assert_eq!(outline.members("lim.t").len(), 2);
}

#[test]
fn imports_with_a_name_are_formatted() {
    let text = "use   \"a\"   as  limits # why\nuse std.patterns  as p\n\nproperty q=limits.near( limits.t.x,within:2 s )and p.absence(limits.t{x:3})\n\
                property r = in( limits.m,off)->once[0,limits.D]limits.near\nchain limits.t->limits.u by x within limits.D\n";
    let expected = "use \"a\" as limits  # why\nuse std.patterns as p\n\nproperty q = limits.near(limits.t.x, within: 2 s) and p.absence(limits.t{x: 3})\n\
                    property r = in(limits.m, off) -> once[0,limits.D] limits.near\nchain limits.t -> limits.u by x within limits.D\n";
    assert_eq!(rondel_spec::format(text).unwrap(), expected);
    assert_eq!(rondel_spec::format(expected).unwrap(), expected);
}

/// Files that import earlier ones, in a random graph. The last is the main file.
struct FileGraph {
    /// For each file the files that it imports, with whether by a name.
    imports: Vec<Vec<(usize, bool)>>,
    /// The names that each file declares.
    own: Vec<Vec<usize>>,
    /// Files that each file sees without an alias, by the definition.
    sees: Vec<Vec<usize>>,
}

impl FileGraph {
    fn random(random: &mut Random) -> FileGraph {
        let files = 2 + random.index(4);
        let mut imports: Vec<Vec<(usize, bool)>> = Vec::new();
        let mut own: Vec<Vec<usize>> = Vec::new();
        for file in 0..files {
            let some = (0..file).filter(|_| random.index(2) == 0).collect::<Vec<_>>();
            imports.push(some.into_iter().map(|other| (other, random.index(3) > 0)).collect());
            own.push((0..6).filter(|_| random.index(4) == 0).collect());
        }
        let mut sees: Vec<Vec<usize>> = Vec::new();
        for (file, imported) in imports.iter().enumerate() {
            let mut all = vec![file];
            for (other, named) in imported {
                all.extend(sees[*other].iter().filter(|_| !named));
            }
            all.sort_unstable();
            all.dedup();
            sees.push(all);
        }
        FileGraph { imports, own, sees }
    }

    /// Returns the names that a file sees without an alias, each with the file that declares it.
    fn declared(&self, file: usize) -> Vec<(usize, usize)> {
        let names = |other: &usize| {
            let other = *other;
            self.own[other].iter().map(move |name| (other, *name))
        };
        self.sees[file].iter().flat_map(names).collect()
    }

    /// Whether a file that the main file needs sees two declarations of a name.
    fn has_clash(&self) -> bool {
        let mut used = vec![self.own.len() - 1];
        let mut next = 0;
        while let Some(file) = used.get(next).copied() {
            next += 1;
            used.extend(self.imports[file].iter().map(|(other, _)| *other));
            let mut seen = Vec::new();
            used.retain(|file| {
                !seen.contains(file) && {
                    seen.push(*file);
                    true
                }
            });
        }
        used.iter().any(|file| {
            let mut names: Vec<usize> = self.declared(*file).into_iter().map(|(_, name)| name).collect();
            names.sort_unstable();
            names.windows(2).any(|pair| pair[0] == pair[1])
        })
    }

    /// Returns a file, and its declarations as they are in one file with unique names.
    fn texts(&self, file: usize, random: &mut Random) -> (String, String) {
        let is_main = file + 1 == self.own.len();
        let mut text = "use \"base\"\n".to_owned();
        let mut reachable: Vec<(String, String)> = Vec::new();
        for (other, named) in &self.imports[file] {
            text += &match named {
                true => format!("use \"f{other}\" as a{file}_{other}\n"),
                false => format!("use \"f{other}\"\n"),
            };
            for (place, name) in self.declared(*other).iter().filter(|_| *named) {
                reachable.push((format!("a{file}_{other}.n{name}"), format!("f{place}_n{name}")));
            }
        }
        let visible = self.declared(file);
        let others = visible.iter().filter(|(place, _)| *place != file);
        reachable.extend(others.map(|(place, name)| (format!("n{name}"), format!("f{place}_n{name}"))));
        let mut plain = String::new();
        for name in &self.own[file] {
            let number = file * 10 + name;
            let mut bodies = [format!("t.x > {number}"), format!("t.x > {number}")];
            if random.index(2) == 0 && !reachable.is_empty() {
                let (written, meant) = &reachable[random.index(reachable.len())];
                bodies[0] += &format!(" and {written}");
                bodies[1] += &format!(" and {meant}");
            }
            text += &format!("let n{name} = {}\n", bodies[0]);
            plain += &format!("let f{file}_n{name} = {}\n", bodies[1]);
            reachable.push((format!("n{name}"), format!("f{file}_n{name}")));
        }
        for (i, (written, meant)) in reachable.iter().enumerate().filter(|_| is_main) {
            text += &format!("property p{i} = prev(t.x) > {i} or {written}\n");
            plain += &format!("property p{i} = prev(t.x) > {i} or {meant}\n");
        }
        if is_main {
            text += "property last = t.x > 0\n";
        }
        (text, plain)
    }
}

/// Files that import earlier ones, in a random graph, mean what one file means in which every name is unique.
#[test]
fn random_files_have_the_meaning_of_one_file() {
    let (mut compared, mut clashes) = (0, 0);
    for seed in rondel_testkit::seeds("random_files_have_the_meaning_of_one_file", 1500) {
        let mut random = Random::new(seed);
        let graph = FileGraph::random(&mut random);
        let files = graph.own.len();
        let (mut texts, mut plain) = (Vec::new(), "topic t { x: int }\n".to_owned());
        for file in 0..files {
            let (text, meant) = graph.texts(file, &mut random);
            plain += &meant;
            texts.push((format!("f{file}"), text));
        }
        texts.reverse();
        texts.push(("base".to_owned(), "topic t { x: int }".to_owned()));
        plain += "property last = t.x > 0\n";
        let sources =
            load(&texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
        let outcome = parse(&sources);
        let rendered = || format!("seed {seed}\n{texts:#?}\n{}", outcome.render_in(&sources, false));
        if graph.has_clash() {
            assert!(outcome.diagnostics.iter().any(|d| d.code.as_str() == "E0204"), "{}", rendered());
            clashes += 1;
            continue;
        }
        let expected = rondel_spec::parse(&plain);
        let expected =
            expected.spec.clone().unwrap_or_else(|| panic!("{}", expected.render("plain", &plain, false)));
        let Some(spec) = &outcome.spec else { panic!("{}", rendered()) };
        let formulas = |spec: &rondel_spec::Spec| -> Vec<String> {
            spec.properties.iter().map(|p| format!("{} {}", p.name, spec.print(p.formula))).collect()
        };
        assert_eq!(formulas(spec), formulas(&expected), "{}", rendered());
        compared += 1;
    }
    assert!(
        rondel_testkit::is_replay() || compared > 400 && clashes > 200,
        "{compared} compared, {clashes} clash"
    );
}
