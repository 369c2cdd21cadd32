//! Refuses steps that reach beyond their field, such as `*/90` in minutes.
//!
//! Such a step only fires at the start of its range, which is not the meaning of "every
//! 90 minutes".

use super::RecurrenceError;
use crate::quote::quote;

/// The fields of an expression with seconds, in order.
pub(super) const FIELDS: [&str; 6] = [
    "second",
    "minute",
    "hour",
    "day-of-month",
    "month",
    "day-of-week",
];

/// The largest step of each field: the distance between its smallest and its
/// largest value.
const LARGEST: [u32; 6] = [59, 59, 23, 30, 11, 7];

/// Checks that each step fits into its field.
///
/// Errors: one does not. The error names the step, the field and its largest step.
pub(super) fn check_steps(fields: &[&str]) -> Result<(), RecurrenceError> {
    // A rule of five fields has no seconds. Counted from the end, the fields of both
    // kinds are the same.
    let fields = fields.iter().rev();
    for ((field, name), largest) in fields.zip(FIELDS.iter().rev()).zip(LARGEST.iter().rev()) {
        let steps = field.split(',').filter_map(|item| item.split_once('/'));
        for (_, step) in steps {
            // The parser has checked that the step is a number, so a number that does not
            // fit here is too great as well.
            if step.parse::<u32>().is_ok_and(|step| step <= *largest) {
                continue;
            }
            return Err(RecurrenceError::Field {
                name,
                text: quote(field.as_bytes()),
                what: format!(
                    "the step {step} is greater than {largest}, the largest step of the field {name}"
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::schedule::recurrence::CronRule;

    #[test]
    fn a_step_beyond_its_field_is_refused() {
        let check = |expr: &str| CronRule::parse(expr, None).map(|_| ());
        for (expr, text) in [
            (
                "*/90 * * * *",
                "cron field minute '*/90': the step 90 is greater than 59, the largest step of the field minute",
            ),
            (
                "0 1,*/24 * * *",
                "cron field hour '1,*/24': the step 24 is greater than 23, the largest step of the field hour",
            ),
            (
                "0 0 */31 * *",
                "cron field day-of-month '*/31': the step 31 is greater than 30, the largest step of the field day-of-month",
            ),
            (
                "0 0 1 1-6/12 *",
                "cron field month '1-6/12': the step 12 is greater than 11, the largest step of the field month",
            ),
            (
                "0 0 * * */8",
                "cron field day-of-week '*/8': the step 8 is greater than 7, the largest step of the field day-of-week",
            ),
            (
                "*/60 * * * * *",
                "cron field second '*/60': the step 60 is greater than 59, the largest step of the field second",
            ),
        ] {
            assert_eq!(check(expr).unwrap_err().to_string(), text);
        }
        for expr in [
            "*/59 */59 */23 */30 */11 */7",
            "0 */12 * * *",
            "@hourly",
            "* * * * *",
        ] {
            assert_eq!(check(expr), Ok(()), "{expr}");
        }
    }
}
