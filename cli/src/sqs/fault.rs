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

impl Kind {
    /// Returns the code of the Query protocol, the name in the JSON protocol, and the status.
    pub fn parts(self) -> (&'static str, &'static str, u16) {
        match self {
            Kind::AccessDenied => ("AccessDenied", "AccessDeniedException", 403),
            Kind::BatchEntryIdsNotDistinct => (
                "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
                "BatchEntryIdsNotDistinct",
                400,
            ),
            Kind::BatchRequestTooLong => (
                "AWS.SimpleQueueService.BatchRequestTooLong",
                "BatchRequestTooLong",
                400,
            ),
            Kind::EmptyBatchRequest => (
                "AWS.SimpleQueueService.EmptyBatchRequest",
                "EmptyBatchRequest",
                400,
            ),
            Kind::IncompleteSignature => {
                ("IncompleteSignature", "IncompleteSignatureException", 400)
            }
            Kind::InternalFailure => ("InternalFailure", "InternalFailure", 500),
            Kind::InvalidAction => ("InvalidAction", "InvalidAction", 400),
            Kind::InvalidAttributeName => ("InvalidAttributeName", "InvalidAttributeName", 400),
            Kind::InvalidAttributeValue => ("InvalidAttributeValue", "InvalidAttributeValue", 400),
            Kind::InvalidBatchEntryId => (
                "AWS.SimpleQueueService.InvalidBatchEntryId",
                "InvalidBatchEntryId",
                400,
            ),
            Kind::InvalidClientTokenId => {
                ("InvalidClientTokenId", "UnrecognizedClientException", 403)
            }
            Kind::InvalidMessageContents => {
                ("InvalidMessageContents", "InvalidMessageContents", 400)
            }
            Kind::InvalidParameterValue => (
                "InvalidParameterValue",
                "InvalidParameterValueException",
                400,
            ),
            Kind::MalformedInput => ("MalformedInput", "SerializationException", 400),
            Kind::MissingAuthenticationToken => (
                "MissingAuthenticationToken",
                "MissingAuthenticationTokenException",
                403,
            ),
            Kind::MissingParameter => {
                ("MissingParameter", "MissingRequiredParameterException", 400)
            }
            Kind::OverLimit => ("OverLimit", "OverLimit", 403),
            Kind::PurgeQueueInProgress => (
                "AWS.SimpleQueueService.PurgeQueueInProgress",
                "PurgeQueueInProgress",
                403,
            ),
            Kind::QueueDoesNotExist => (
                "AWS.SimpleQueueService.NonExistentQueue",
                "QueueDoesNotExist",
                400,
            ),
            Kind::QueueNameExists => ("QueueAlreadyExists", "QueueNameExists", 400),
            Kind::ReceiptHandleIsInvalid => {
                ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 400)
            }
            Kind::ResourceNotFound => (
                "ResourceNotFoundException",
                "ResourceNotFoundException",
                404,
            ),
            Kind::ServiceUnavailable => ("ServiceUnavailable", "ServiceUnavailable", 503),
            Kind::SignatureDoesNotMatch => {
                ("SignatureDoesNotMatch", "InvalidSignatureException", 403)
            }
            Kind::TooManyEntriesInBatchRequest => (
                "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
                "TooManyEntriesInBatchRequest",
                400,
            ),
            Kind::UnsupportedOperation => (
                "AWS.SimpleQueueService.UnsupportedOperation",
                "UnsupportedOperation",
                400,
            ),
        }
    }

    /// Returns whether the request is to blame, as `Type` in the Query protocol.
    pub fn blame(self) -> &'static str {
        match self.parts().2 {
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
const PASSING: [&str; 14] = [
    "OOM",
    "QUEUEFULL",
    "QUEUECLOSED",
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MISCONF",
    "NOREPLICAS",
    "BUSY",
    "UNBLOCKED",
    "MOVED",
    "ASK",
];

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        let kind = match &failure {
            Failure::Lost(_) => Kind::ServiceUnavailable,
            Failure::Refused(words) if PASSING.iter().any(|word| words.starts_with(word)) => {
                Kind::ServiceUnavailable
            }
            _ => Kind::InternalFailure,
        };
        Fault::new(kind, failure.to_string())
    }
}
