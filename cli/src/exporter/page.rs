//! The text format of Prometheus, in which all samples of a metric stand together.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Samples by metric: beginning and rest of its name, its help, and its lines.
#[derive(Default)]
pub struct Page(BTreeMap<(&'static str, &'static str), (&'static str, String)>);

impl Page {
    /// Returns a writer of samples with these labels, of metrics whose names begin like this.
    pub fn of(&mut self, prefix: &'static str, labels: String) -> Samples<'_> {
        Samples {
            page: self,
            prefix,
            labels,
        }
    }

    /// Returns the text. Counters are the metrics whose names end in `_total`.
    pub fn text(self) -> String {
        let size = self.0.values().map(|(_, lines)| lines.len() + 200).sum();
        let mut text = String::with_capacity(size);
        for ((prefix, name), (help, lines)) in self.0 {
            let kind = match name.ends_with("_total") {
                true => "counter",
                false => "gauge",
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {prefix}{name} {help}");
            let _ = writeln!(text, "# TYPE {prefix}{name} {kind}");
            text.push_str(&lines);
        }
        text
    }
}

/// Adds samples that have the same labels.
pub struct Samples<'a> {
    page: &'a mut Page,
    prefix: &'static str,
    labels: String,
}

impl Samples<'_> {
    /// Adds a sample.
    pub fn add(&mut self, name: &'static str, help: &'static str, value: f64) {
        let prefix = self.prefix;
        let (_, lines) = (self.page.0)
            .entry((prefix, name))
            .or_insert((help, String::new()));
        let _ = match self.labels.is_empty() {
            true => writeln!(lines, "{prefix}{name} {value}"),
            false => writeln!(lines, "{prefix}{name}{{{}}} {value}", self.labels),
        };
    }

    /// Adds a sample with one more label, whose text is fit to stand within quotation marks.
    pub fn add_by(&mut self, name: &'static str, help: &'static str, by: (&str, &str), value: f64) {
        let length = self.labels.len();
        let _ = write!(self.labels, ",{}=\"{}\"", by.0, by.1);
        self.add(name, help, value);
        self.labels.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_of_a_metric_stand_together() {
        let mut page = Page::default();
        for queue in ["a", "b"] {
            let mut of = page.of("dq_queue_", format!("queue=\"{queue}\""));
            of.add("sent_total", "Messages sent", 3.0);
            of.add_by("messages", "By state", ("state", "ready"), 0.5);
        }
        page.of("dq_", String::new()).add("up", "Up", 1.0);
        let expected = "# HELP dq_up Up\n# TYPE dq_up gauge\ndq_up 1\n\
            # HELP dq_queue_messages By state\n# TYPE dq_queue_messages gauge\n\
            dq_queue_messages{queue=\"a\",state=\"ready\"} 0.5\n\
            dq_queue_messages{queue=\"b\",state=\"ready\"} 0.5\n\
            # HELP dq_queue_sent_total Messages sent\n# TYPE dq_queue_sent_total counter\n\
            dq_queue_sent_total{queue=\"a\"} 3\ndq_queue_sent_total{queue=\"b\"} 3\n";
        assert_eq!(page.text(), expected);
    }
}
