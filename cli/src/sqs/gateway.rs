//! The gateway: what all requests share, and which action does what.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use super::fault::{Fault, Kind};
use super::names::{of_url, Names};
use super::params::{self, Params};
use super::queue::{self, Queue};
use super::receive::{self, Received};
use super::request::Call;
use super::store::{self, cmd, Script, Store};
use super::waits::Waits;
use super::{handle, lists, moves, permission, send, settings, settle, tags};

/// Queues whose attributes are remembered. Each use checks that they are still the same.
const REMEMBERED: usize = 10_000;

/// The parts that all requests share.
pub struct Gateway {
    /// How names are made.
    pub names: Names,
    /// The server of the queues.
    pub store: Arc<Store>,
    /// Those who wait for messages.
    pub waits: Waits,
    /// The seal that signs receipt handles.
    pub seal: handle::Seal,
    /// The scripts.
    pub scripts: Scripts,
    queues: Mutex<HashMap<String, Arc<Queue>>>,
}

/// The scripts of the gateway.
pub struct Scripts {
    /// Makes a queue.
    pub create: Script,
    /// Changes fields and options of a queue.
    pub change: Script,
    /// Removes all messages.
    pub purge: Script,
    /// Sends messages.
    pub send: Script,
    /// Begins a move task.
    pub begin_move: Script,
}

impl Gateway {
    /// Creates the gateway.
    pub fn new(names: Names, store: Store) -> Gateway {
        let store = Arc::new(store);
        Gateway {
            waits: Waits::new(Arc::clone(&store)),
            seal: handle::Seal::default(),
            scripts: Scripts {
                create: Script::new(settings::CREATE),
                change: Script::new(settings::CHANGE),
                purge: Script::new(settings::PURGE),
                send: Script::new(send::SEND),
                begin_move: Script::new(moves::BEGIN),
            },
            names,
            store,
            queues: Mutex::default(),
        }
    }

    /// Does what a request asks for.
    pub async fn act(&self, call: &Call) -> Result<Received, Fault> {
        if call.action == "ReceiveMessage" {
            return receive::receive(self, call).await;
        }
        let work: Pin<Box<dyn Future<Output = Result<Params, Fault>> + Send + '_>> =
            match call.action.as_str() {
                "CreateQueue" => Box::pin(settings::create(self, call)),
                "GetQueueUrl" => Box::pin(lists::url(self, call)),
                "ListQueues" => Box::pin(lists::queues(self, call)),
                "ListDeadLetterSourceQueues" => Box::pin(lists::sources(self, call)),
                "DeleteQueue" => Box::pin(settings::delete(self, call)),
                "PurgeQueue" => Box::pin(settings::purge(self, call)),
                "GetQueueAttributes" => Box::pin(settings::get(self, call)),
                "SetQueueAttributes" => Box::pin(settings::set(self, call)),
                "TagQueue" => Box::pin(tags::tag(self, call)),
                "UntagQueue" => Box::pin(tags::untag(self, call)),
                "ListQueueTags" => Box::pin(tags::list(self, call)),
                "AddPermission" => Box::pin(permission::add(self, call)),
                "RemovePermission" => Box::pin(permission::remove(self, call)),
                "SendMessage" => Box::pin(send::one(self, call)),
                "SendMessageBatch" => Box::pin(send::batch(self, call)),
                "DeleteMessage" => Box::pin(settle::delete(self, call)),
                "DeleteMessageBatch" => Box::pin(settle::delete_batch(self, call)),
                "ChangeMessageVisibility" => Box::pin(settle::change(self, call)),
                "ChangeMessageVisibilityBatch" => Box::pin(settle::change_batch(self, call)),
                "StartMessageMoveTask" => Box::pin(moves::start(self, call)),
                "CancelMessageMoveTask" => Box::pin(moves::cancel(self, call)),
                "ListMessageMoveTasks" => Box::pin(moves::list(self, call)),
                other => {
                    let message = format!("The action {other} is not valid for this endpoint.");
                    return Err(Fault::new(Kind::InvalidAction, message));
                }
            };
        Ok(Received::Now(work.await?))
    }

    /// Returns the queue that a request names, as this gateway remembers it. Its use must
    /// check that it is still the same.
    pub async fn named(&self, call: &Call) -> Result<Arc<Queue>, Fault> {
        let url = params::needed(&call.params, "QueueUrl")?;
        let name = of_url(&url);
        call.key.check(name, &call.action)?;
        self.remembered(name).await
    }

    /// Returns the queue that a request names, as it is now.
    pub async fn fresh(&self, call: &Call) -> Result<Arc<Queue>, Fault> {
        let url = params::needed(&call.params, "QueueUrl")?;
        let name = of_url(&url);
        call.key.check(name, &call.action)?;
        self.read(name).await
    }

    /// Returns a queue as this gateway remembers it.
    pub async fn remembered(&self, name: &str) -> Result<Arc<Queue>, Fault> {
        let found = {
            let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            queues.get(name).cloned()
        };
        match found {
            Some(queue) => Ok(queue),
            None => self.read(name).await,
        }
    }

    /// Reads a queue, and remembers it.
    pub async fn read(&self, name: &str) -> Result<Arc<Queue>, Fault> {
        let beside = self.names.beside(name, "attributes");
        let fields = store::texts(self.store.call(cmd("HGETALL", &beside)).await?);
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if !fields.contains_key(queue::VERSION) {
            queues.remove(name);
            return Err(Fault::no_queue());
        }
        let queue = Arc::new(Queue {
            name: name.to_owned(),
            key: self.names.key(name),
            beside,
            fields,
        });
        if queues.len() >= REMEMBERED {
            queues.clear();
        }
        queues.insert(name.to_owned(), Arc::clone(&queue));
        Ok(queue)
    }

    /// Forgets a queue, which has changed.
    pub fn forget(&self, name: &str) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.remove(name);
    }

    /// Returns the queue of an ARN in a request about move tasks.
    pub async fn of_arn(&self, arn: &str, parameter: &str) -> Result<Arc<Queue>, Fault> {
        if arn.split(':').count() != 6 || !arn.starts_with("arn:") {
            return Err(Fault::value(format!(
                "You must use this format to specify the {parameter}: \
                 arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
            )));
        }
        let gone = || {
            Fault::new(
                Kind::ResourceNotFound,
                format!(
                    "The resource that you specified for the {parameter} parameter doesn't exist."
                ),
            )
        };
        let name = self.names.of_arn(arn).ok_or_else(gone)?;
        match self.read(name).await {
            Err(fault) if fault.kind == Kind::QueueDoesNotExist => Err(gone()),
            other => other,
        }
    }
}
