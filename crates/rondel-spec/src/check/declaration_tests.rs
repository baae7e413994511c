//! Keys, machines, chains and tests: what they become.

use rondel_event::ValueType;

use crate::{SliceId, Spec, parse};

fn spec(text: &str) -> Spec {
    let outcome = parse(text);
    let shown = outcome.render("spec", text, false);
    assert!(outcome.diagnostics.is_empty(), "{shown}");
    outcome.spec.unwrap()
}

#[test]
fn equal_keys_are_one_slice() {
    let spec = spec(
        "topic request { id: string } topic grant { id: string } topic done
         property a for each id in (request.id, grant.id) until on(done) = on(grant) -> once on(request)
         property b for each id in (request.id, grant.id) until on(done) = on(grant) -> id != \"\"
         property c for each id in (request.id, grant.id) = on(grant) -> once on(request)
         @limit(1_000) property d for each id in (request.id, grant.id) = on(grant) -> once on(request)
         property e = on(grant) -> once on(request)",
    );
    let slices: Vec<_> = spec.properties.iter().map(|p| p.slice).collect();
    assert_eq!(slices, [Some(SliceId(0)), Some(SliceId(0)), Some(SliceId(1)), Some(SliceId(2)), None]);
    assert_eq!(spec.slices.len(), 3);
    assert_eq!(spec.print(spec.slices[0].until.unwrap()).to_string(), "(on done)");
    assert_eq!((spec.slices[1].until, spec.slices[1].limit), (None, None));
    assert_eq!(spec.slices[2].limit, Some(1000));
    let key = &spec.slices[0].keys[0];
    assert_eq!((key.name.as_str(), key.value_type), ("id", ValueType::String));
    let fields: Vec<_> = key.fields.iter().map(|(t, p)| (t.index(), p.to_string())).collect();
    assert_eq!(fields, [(0, "id".to_owned()), (1, "id".to_owned())]);
    let formula = spec.print(spec.properties[1].formula).to_string();
    assert_eq!(formula, "(or (not (on grant)) (!= key0 \"\"))");
}

#[test]
fn a_key_has_the_type_that_anything_says() {
    let key_type = |text: &str| {
        let spec = parse(text).spec.unwrap();
        spec.slices[0].keys[0].value_type
    };
    let t = |formula: &str| key_type(&format!("topic a property p for each k in a.k = {formula}"));
    assert_eq!(t("on(a)"), ValueType::String);
    assert_eq!(t("k > 3 and on(a)"), ValueType::Int);
    assert_eq!(t("a.k != 4"), ValueType::Int);
    assert_eq!(t("not a.k"), ValueType::Bool);
    assert_eq!(t("k == a.v and a.v > 3"), ValueType::Int);
    let both = "topic a topic b { k: time } property p for each k in (a.k, b.k) = on(a)";
    assert_eq!(key_type(both), ValueType::Time);
}
