//! Whether a form comes from a page of ours. Sessions and tokens protect most forms, but at
//! sign-in there is neither yet.

/// Returns whether a form may be accepted, by the browser's header about the page that has
/// sent it. `header` returns a header of the request.
///
/// Browsers say `Sec-Fetch-Site` to https and to this machine only. To others they say the
/// `Origin`, which is compared with the name that was asked for: `Host`, or behind a proxy
/// `X-Forwarded-Host`. A request without both is not from a page.
pub fn is_ours(header: impl Fn(&str) -> Option<String>) -> bool {
    if let Some(site) = header("sec-fetch-site") {
        return matches!(site.as_str(), "same-origin" | "none");
    }
    let origin = match (header("origin"), header("referer")) {
        (Some(origin), _) => origin,
        (None, Some(page)) => page,
        (None, None) => return true,
    };
    let Some(origin) = authority(&origin) else {
        return false;
    };
    let asked = ["host", "x-forwarded-host"].map(&header);
    asked.into_iter().flatten().any(|hosts| {
        // Each proxy adds the name that it was asked for, so the first is the visitor's.
        let host = hosts.split(',').next().unwrap_or_default();
        fits(&origin, &host.trim().to_ascii_lowercase())
    })
}

/// Returns name and port of an address, in lower case.
fn authority(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let default = if scheme == "https" { ":443" } else { ":80" };
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix(default).unwrap_or(&host);
    (!host.is_empty() && !host.contains('@')).then(|| host.to_owned())
}

/// Returns whether a host is the origin. Some proxies pass the name on without its port.
fn fits(origin: &str, host: &str) -> bool {
    let host = host.strip_suffix(":443").unwrap_or(host);
    let host = host.strip_suffix(":80").unwrap_or(host);
    let (name, port) = split(origin);
    match split(host) {
        (host, None) => host == name,
        (host, host_port) => host == name && host_port == port,
    }
}

/// Splits a host into its name and its port. The name of an IPv6 address is in brackets.
fn split(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, Some(port)),
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(headers: &[(&str, &str)]) -> bool {
        is_ours(|name| {
            let found = headers.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_the_browser_says_decides() {
        let host = ("host", "queues.example:8377");
        assert!(ours(&[host]));
        assert!(ours(&[host, ("origin", "http://queues.example:8377")]));
        assert!(ours(&[host, ("origin", "http://QUEUES.example:8377")]));
        assert!(ours(&[
            host,
            ("referer", "http://queues.example:8377/login?x")
        ]));
        for origin in [
            "http://evil.example",
            "http://queues.example.evil:8377",
            "http://queues.example:9000",
            "http://queues.example:8377@evil.example",
            "null",
            "",
        ] {
            assert!(!ours(&[host, ("origin", origin)]), "{origin}");
        }
        assert!(!ours(&[
            host,
            ("referer", "http://evil.example/queues.example:8377")
        ]));
        for (site, expected) in [
            ("same-origin", true),
            ("none", true),
            ("same-site", false),
            ("cross-site", false),
        ] {
            let said = [host, ("sec-fetch-site", site), ("origin", "null")];
            assert_eq!(ours(&said), expected, "{site}");
        }
    }

    #[test]
    fn a_proxy_says_what_it_was_asked_for() {
        let behind = |host, forwarded, origin| {
            ours(&[
                ("host", host),
                ("x-forwarded-host", forwarded),
                ("origin", origin),
            ])
        };
        assert!(behind(
            "127.0.0.1:8377",
            "queues.example",
            "https://queues.example"
        ));
        assert!(behind(
            "127.0.0.1:8377",
            "queues.example, inner",
            "https://queues.example"
        ));
        assert!(!behind(
            "127.0.0.1:8377",
            "queues.example",
            "https://evil.example"
        ));
        assert!(ours(&[
            ("host", "queues.example"),
            ("origin", "http://queues.example:8080")
        ]));
        assert!(ours(&[
            ("host", "[::1]:8377"),
            ("origin", "http://[::1]:8377")
        ]));
        assert!(!ours(&[
            ("host", "[::1]:8377"),
            ("origin", "http://[::2]:8377")
        ]));
        assert!(ours(&[("host", "a:443"), ("origin", "https://a")]));
    }
}
