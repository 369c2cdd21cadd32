//! Errors of the API, with the codes, statuses and texts of AWS.

use crate::failure::Failure;

/// A kind of error, by its name in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user may not do this.
    AccessDenied,
    /// Two entries of a batch have one id.
    BatchEntryIdsNotDistinct,
    /// The messages of a batch are too long together.
    BatchRequestTooLong,
    /// A batch has no entries.
    EmptyBatchRequest,
    /// The signature lacks a part.
    IncompleteSignature,
    /// Something is wrong here, and not with the request.
    InternalFailure,
    /// There is no such action.
    InvalidAction,
    /// There is no such attribute, or not for such a queue.
    InvalidAttributeName,
    /// An attribute of a queue cannot have this value.
    InvalidAttributeValue,
    /// The id of an entry of a batch has other characters than it may, or too many.
    InvalidBatchEntryId,
    /// Nobody has this access key.
    InvalidClientTokenId,
    /// A body has characters that it may not have.
    InvalidMessageContents,
    /// A parameter cannot have this value.
    InvalidParameterValue,
    /// The request is none of the protocol.
    MalformedInput,
    /// The request is not signed.
    MissingAuthenticationToken,
    /// A parameter is missing.
    MissingParameter,
    /// More of something than there may be.
    OverLimit,
    /// The queue was purged less than a minute ago.
    PurgeQueueInProgress,
    /// There is no such queue.
    QueueDoesNotExist,
    /// There is such a queue, with other attributes.
    QueueNameExists,
    /// The receipt handle was never given out.
    ReceiptHandleIsInvalid,
    /// There is no such queue or task.
    ResourceNotFound,
    /// The server of the queues is away or takes nothing.
    ServiceUnavailable,
    /// The request was signed with another key, or changed on its way.
    SignatureDoesNotMatch,
    /// A batch has more entries than it may.
    TooManyEntriesInBatchRequest,
    /// Something that the server of the queues cannot do.
    UnsupportedOperation,
}

/// The code of a missing queue.
pub const GONE: &str = "AWS.SimpleQueueService.NonExistentQueue";

impl Kind {
    /// Returns the name in the JSON protocol, the code of the Query protocol, and the status. A
    /// code that is missing is the name behind `AWS.SimpleQueueService.`
    fn parts(self) -> (&'static str, Option<&'static str>, u16) {
        let same = |name: &'static str, status| (name, Some(name), status);
        match self {
            Kind::AccessDenied => ("AccessDeniedException", Some("AccessDenied"), 403),
            Kind::BatchEntryIdsNotDistinct => ("BatchEntryIdsNotDistinct", None, 400),
            Kind::BatchRequestTooLong => ("BatchRequestTooLong", None, 400),
            Kind::EmptyBatchRequest => ("EmptyBatchRequest", None, 400),
            Kind::IncompleteSignature => (
                "IncompleteSignatureException",
                Some("IncompleteSignature"),
                400,
            ),
            Kind::InternalFailure => same("InternalFailure", 500),
            Kind::InvalidAction => same("InvalidAction", 400),
            Kind::InvalidAttributeName => same("InvalidAttributeName", 400),
            Kind::InvalidAttributeValue => same("InvalidAttributeValue", 400),
            Kind::InvalidBatchEntryId => ("InvalidBatchEntryId", None, 400),
            Kind::InvalidClientTokenId => (
                "UnrecognizedClientException",
                Some("InvalidClientTokenId"),
                403,
            ),
            Kind::InvalidMessageContents => same("InvalidMessageContents", 400),
            Kind::InvalidParameterValue => (
                "InvalidParameterValueException",
                Some("InvalidParameterValue"),
                400,
            ),
            Kind::MalformedInput => ("SerializationException", Some("MalformedInput"), 400),
            Kind::MissingAuthenticationToken => {
                let name = "MissingAuthenticationTokenException";
                (name, Some("MissingAuthenticationToken"), 403)
            }
            Kind::MissingParameter => (
                "MissingRequiredParameterException",
                Some("MissingParameter"),
                400,
            ),
            Kind::OverLimit => same("OverLimit", 403),
            Kind::PurgeQueueInProgress => ("PurgeQueueInProgress", None, 403),
            Kind::QueueDoesNotExist => ("QueueDoesNotExist", Some(GONE), 400),
            Kind::QueueNameExists => ("QueueNameExists", Some("QueueAlreadyExists"), 400),
            Kind::ReceiptHandleIsInvalid => same("ReceiptHandleIsInvalid", 400),
            Kind::ResourceNotFound => same("ResourceNotFoundException", 404),
            Kind::ServiceUnavailable => same("ServiceUnavailable", 503),
            Kind::SignatureDoesNotMatch => (
                "InvalidSignatureException",
                Some("SignatureDoesNotMatch"),
                403,
            ),
            Kind::TooManyEntriesInBatchRequest => ("TooManyEntriesInBatchRequest", None, 400),
            Kind::UnsupportedOperation => ("UnsupportedOperation", None, 400),
        }
    }

    /// Returns the name in the JSON protocol.
    pub fn name(self) -> &'static str {
        self.parts().0
    }

    /// Returns the code of the Query protocol.
    pub fn code(self) -> String {
        let (name, code, _) = self.parts();
        code.map_or_else(|| format!("AWS.SimpleQueueService.{name}"), str::to_owned)
    }

    /// Returns the status.
    pub fn status(self) -> u16 {
        self.parts().2
    }

    /// Returns whether the request is to blame, as `Type` in the Query protocol.
    pub fn blame(self) -> &'static str {
        match self.status() {
            500.. => "Receiver",
            _ => "Sender",
        }
    }
}

/// An error, as it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of error.
    pub kind: Kind,
    /// The text that the client shows.
    pub message: String,
}

impl Fault {
    /// Creates an error with this text.
    pub fn new(kind: Kind, message: impl Into<String>) -> Fault {
        Fault {
            kind,
            message: message.into(),
        }
    }

    /// The queue does not exist.
    pub fn no_queue() -> Fault {
        Fault::new(
            Kind::QueueDoesNotExist,
            "The specified queue does not exist.",
        )
    }

    /// A parameter cannot have this value.
    pub fn value(message: impl Into<String>) -> Fault {
        Fault::new(Kind::InvalidParameterValue, message)
    }

    /// The parameter `name` cannot have this value, for a reason.
    pub fn parameter(value: impl std::fmt::Display, name: &str, reason: &str) -> Fault {
        Fault::value(format!(
            "Value {value} for parameter {name} is invalid. Reason: {reason}"
        ))
    }

    /// A parameter is missing.
    pub fn missing(name: &str) -> Fault {
        let message = format!("The request must contain the parameter {name}.");
        Fault::new(Kind::MissingParameter, message)
    }

    /// The receipt handle was never given out.
    pub fn receipt(handle: &str) -> Fault {
        let message =
            format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
        Fault::new(Kind::ReceiptHandleIsInvalid, message)
    }

    /// The server answers nothing that makes sense.
    pub fn reply() -> Fault {
        Fault::new(
            Kind::InternalFailure,
            "The server of the queues answers in another form than that of this version.",
        )
    }
}

/// Beginnings of refusals after which it is worth while to try again.
const PASSING: &str = "OOM QUEUEFULL QUEUECLOSED LOADING READONLY MASTERDOWN CLUSTERDOWN TRYAGAIN \
    MISCONF NOREPLICAS BUSY UNBLOCKED MOVED ASK";

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        let kind = match &failure {
            Failure::Lost(_) => Kind::ServiceUnavailable,
            Failure::Refused(words) if PASSING.split(' ').any(|word| words.starts_with(word)) => {
                Kind::ServiceUnavailable
            }
            _ => Kind::InternalFailure,
        };
        Fault::new(kind, failure.to_string())
    }
}
