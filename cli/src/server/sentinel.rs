//! The address of a primary that Sentinels watch.

use std::borrow::Cow;

use redis::Connection;

use crate::failure::Failure;

/// Returns the URL of a server. One of Sentinels, `redis+sentinel://[user:password@]host:port[,host:port]/name[/db]`, becomes that
/// of the primary of this name, as the first Sentinel that answers knows it. User and password are the server's; a Sentinel
/// that wants some gets them, too. With `rediss+sentinel` all of them speak TLS. `connect` connects to a URL, and signs in if
/// it is told to.
pub fn resolved(
    url: &str,
    connect: impl Fn(&str, bool) -> Result<Connection, Failure>,
) -> Result<Cow<'_, str>, Failure> {
    let Some((scheme, rest)) = url.split_once("+sentinel://") else {
        return Ok(Cow::Borrowed(url));
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (format!("{user}@"), rest),
        None => (String::new(), rest),
    };
    let mut parts = rest.splitn(3, '/');
    let hosts = parts.next().unwrap_or_default();
    let name = parts.next().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::mistake("the URL of Sentinels names no primary"))?;
    let db = parts.next().unwrap_or("0");
    let mut last = Failure::Lost("no Sentinel is named".to_owned());
    for host in hosts.split(',') {
        let ask = |signs_in| {
            let user = if signs_in { user.as_str() } else { "" };
            let mut connection = connect(&format!("{scheme}://{user}{host}"), signs_in)?;
            let mut cmd = redis::cmd("SENTINEL");
            cmd.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
            Ok(cmd.query::<Option<(String, u16)>>(&mut connection)?)
        };
        let answer = match ask(false) {
            Err(Failure::Refused(words)) if words.starts_with("NOAUTH") => ask(true),
            other => other,
        };
        match answer {
            Ok(Some((host, port))) => {
                let host = if host.contains(':') {
                    format!("[{host}]")
                } else {
                    host
                };
                return Ok(Cow::Owned(format!("{scheme}://{user}{host}:{port}/{db}")));
            }
            Ok(None) => {
                last = Failure::mistake(format!("the Sentinel {host} knows no primary {name}"))
            }
            Err(failure) => last = Failure::Lost(format!("the Sentinel {host}: {failure}")),
        }
    }
    Err(last)
}
