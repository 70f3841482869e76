//! TLS as the exporter has it.

use crate::backend::Backend;
use crate::certificates::{Authority, Files};
use crate::logs::{append_lines, dead_letters, events, world_for};

#[test]
fn over_tls_both_sides_prove_who_they_are() {
    let (authority, files) = (Authority::new(), Files::new());
    let backend = Backend::start_tls(authority.sign("localhost").server(Some(&authority)));
    let url = format!("https://localhost:{}", backend.address.port());
    let client = authority.sign("warpgauge");
    let ca = files.add("ca.pem", &authority.certificate);
    let certificate = files.add("client.pem", &client.certificate);
    let key = files.add("client.key", &client.key);
    let trusting = format!("ca_file = \"{}\"\n", ca.display());
    let identified = format!(
        "{trusting}client_certificate_file = \"{}\"\nclient_key_file = \"{}\"\n",
        certificate.display(),
        key.display()
    );

    for (keys, words) in [("", "ca_file"), (trusting.as_str(), "client certificate")] {
        let world = world_for(&url, &format!("budget = \"5s\"\n{keys}"));
        append_lines(&world, "a.log", &events("init", 0..1));
        let pass = world.pass_ends(78);
        let why = pass.report["forwarding"]["misconfigured"].as_str().unwrap();
        assert!(why.contains(words), "{why}");
        assert_eq!((backend.posts().len(), dead_letters(&world).len()), (0, 0));
    }
    let world = world_for(&url, &identified);
    append_lines(&world, "a.log", &events("init", 0..3));
    world.pass_ends(0);
    assert_eq!(backend.lines(), events("init", 0..3));
}
