//! Receipt handles: a queue, a message and a delivery of it, sealed.

use std::sync::{Mutex, PoisonError};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use ring::hmac;

use super::fault::Fault;
use super::gateway::Gateway;
use super::store::{self, cmd};

/// The bytes of a seal that are kept.
const SEAL: usize = 12;

/// The delivery that a receipt handle names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// The id of the message.
    pub id: String,
    /// The receipt of the delivery.
    pub receipt: i64,
}

/// The secret of the seals, which all gateways of a server share.
#[derive(Default)]
pub struct Seal(Mutex<Option<hmac::Key>>);

impl Seal {
    /// Returns the secret. The first gateway of a server makes it.
    async fn key(&self, gateway: &Gateway, anew: bool) -> Result<hmac::Key, Fault> {
        let known = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.clone().filter(|_| !anew)
        };
        if let Some(key) = known {
            return Ok(key);
        }
        let place = gateway.names.common("secret");
        let set = cmd("SET", (&place, store::uuid(), "NX"));
        let get = cmd("GET", &place);
        let mut replies = gateway.store.pipeline(vec![set, get]).await?;
        let secret = replies.pop().ok_or_else(Fault::reply)??;
        let secret = store::text(&secret).ok_or_else(Fault::reply)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key.clone());
        Ok(key)
    }

    /// Returns the handles of deliveries from a queue.
    pub async fn handles(
        &self,
        gateway: &Gateway,
        queue: &str,
        deliveries: impl Iterator<Item = (&str, i64)>,
    ) -> Result<Vec<String>, Fault> {
        let key = self.key(gateway, false).await?;
        Ok(deliveries
            .map(|(id, receipt)| {
                let mut text = format!("{receipt} {id}").into_bytes();
                let seal = hmac::sign(&key, &sealed(queue, &text));
                text.splice(0..0, seal.as_ref().iter().take(SEAL).copied());
                STANDARD.encode(text)
            })
            .collect())
    }

    /// Reads a handle. A gateway that was there before the secret was lost reads it anew.
    pub async fn open(
        &self,
        gateway: &Gateway,
        queue: &str,
        handle: &str,
    ) -> Result<Handle, Fault> {
        let bytes = STANDARD.decode(handle).unwrap_or_default();
        let Some((seal, text)) = bytes.split_at_checked(SEAL) else {
            return Err(Fault::receipt(handle));
        };
        for anew in [false, true] {
            let key = self.key(gateway, anew).await?;
            let right = hmac::sign(&key, &sealed(queue, text));
            // The seal only keeps mistakes out. Who may act is decided by the signature of
            // the request.
            if right.as_ref().get(..SEAL) == Some(seal) {
                let text = String::from_utf8_lossy(text);
                let parts = text.split_once(' ');
                let parts = parts.and_then(|(receipt, id)| Some((receipt.parse().ok()?, id)));
                let (receipt, id) = parts.ok_or_else(|| Fault::receipt(handle))?;
                return Ok(Handle {
                    id: id.to_owned(),
                    receipt,
                });
            }
        }
        Err(Fault::receipt(handle))
    }
}

fn sealed(queue: &str, text: &[u8]) -> Vec<u8> {
    [queue.as_bytes(), b" ", text].concat()
}
