//! The gateway: what all requests share, and which action does what.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::fault::{Fault, Kind};
use super::names::{of_url, Names};
use super::params::{self, Params};
use super::queue::{self, Queue};
use super::request::Call;
use super::store::{self, Script, Store};
use super::waits::Waits;
use super::{handle, lists, moves, permission, receive, send, settings, settle, tags};

/// Queues whose attributes are remembered. Each use checks that they are still the same.
const REMEMBERED: usize = 10_000;

/// What all requests share.
pub struct Gateway {
    /// How names are made.
    pub names: Names,
    /// The server of the queues.
    pub store: Arc<Store>,
    /// Those who wait for messages.
    pub waits: Waits,
    /// What receipt handles are signed with.
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
    pub async fn act(&self, call: &Call) -> Result<Params, Fault> {
        match call.action.as_str() {
            "CreateQueue" => settings::create(self, call).await,
            "GetQueueUrl" => lists::url(self, call).await,
            "ListQueues" => lists::queues(self, call).await,
            "ListDeadLetterSourceQueues" => lists::sources(self, call).await,
            "DeleteQueue" => settings::delete(self, call).await,
            "PurgeQueue" => settings::purge(self, call).await,
            "GetQueueAttributes" => settings::get(self, call).await,
            "SetQueueAttributes" => settings::set(self, call).await,
            "TagQueue" => tags::tag(self, call).await,
            "UntagQueue" => tags::untag(self, call).await,
            "ListQueueTags" => tags::list(self, call).await,
            "AddPermission" => permission::add(self, call).await,
            "RemovePermission" => permission::remove(self, call).await,
            "SendMessage" => send::one(self, call).await,
            "SendMessageBatch" => send::batch(self, call).await,
            "ReceiveMessage" => receive::receive(self, call).await,
            "DeleteMessage" => settle::delete(self, call).await,
            "DeleteMessageBatch" => settle::delete_batch(self, call).await,
            "ChangeMessageVisibility" => settle::change(self, call).await,
            "ChangeMessageVisibilityBatch" => settle::change_batch(self, call).await,
            "StartMessageMoveTask" => moves::start(self, call).await,
            "CancelMessageMoveTask" => moves::cancel(self, call).await,
            "ListMessageMoveTasks" => moves::list(self, call).await,
            other => Err(Fault::new(
                Kind::InvalidAction,
                format!("The action {other} is not valid for this endpoint."),
            )),
        }
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
        let mut cmd = redis::cmd("HGETALL");
        cmd.arg(&beside);
        let fields = store::pairs(self.store.call(cmd).await?);
        let fields: BTreeMap<String, String> = fields
            .iter()
            .filter_map(|(field, value)| Some((store::text(field)?, store::text(value)?)))
            .collect();
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
