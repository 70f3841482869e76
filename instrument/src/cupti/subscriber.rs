//! CUPTI's slot: one subscriber in a process.
#![allow(unsafe_code, reason = "CUPTI is a C library")]

use std::ffi::c_void;
use std::ptr;

use crate::cupti::callbacks::on_callback;
use crate::cupti::symbols::{Cupti, CuptiError};
use crate::cupti::types::{CALLBACKS, callbacks_if_known, domain};

/// CUPTI's slot while it is ours.
#[derive(Debug)]
pub struct Subscription {
    cupti: Cupti,
    handle: *mut c_void,
}

// SAFETY: the handle is a token for CUPTI; whoever holds the subscription makes one call at a time.
unsafe impl Send for Subscription {}

impl Subscription {
    /// Takes the slot and asks for the callbacks. On an error the slot is free again.
    ///
    /// # Errors
    /// [`CuptiError::Call`]: 39 where another tool has the slot.
    pub fn take(cupti: &Cupti) -> Result<Self, CuptiError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer may be written; the callback has CUPTI's type and the library that
        // holds it is never unmapped.
        let code = unsafe { (cupti.subscribe)(&raw mut handle, on_callback, ptr::null_mut()) };
        cupti.checked("cuptiSubscribe", code)?;
        let subscription = Self { cupti: cupti.clone(), handle };
        match subscription.enable_callbacks() {
            Ok(()) => Ok(subscription),
            Err(error) => {
                // The first failure is the one to tell.
                let _given_back = subscription.give_back();
                Err(error)
            }
        }
    }

    fn enable_callbacks(&self) -> Result<(), CuptiError> {
        CALLBACKS.iter().try_for_each(|&(domain, id)| {
            // SAFETY: the handle is that of a live subscription.
            let code = unsafe { (self.cupti.enable_callback)(1, self.handle, domain, id) };
            self.cupti.checked("cuptiEnableCallback", code)
        })?;
        for id in callbacks_if_known() {
            // SAFETY: as above. What this CUPTI does not know its driver does not call.
            unsafe { (self.cupti.enable_callback)(1, self.handle, domain::DRIVER_API, id) };
        }
        Ok(())
    }

    /// Asks whether the slot is still ours: another tool may have finalised CUPTI and with it every
    /// subscription. Asks for a callback again that we have, which changes nothing.
    ///
    /// # Errors
    /// [`CuptiError::Call`]: the subscription is gone, and nothing is to be given back.
    pub fn check(&self) -> Result<(), CuptiError> {
        let [(domain, id), ..] = CALLBACKS;
        // SAFETY: CUPTI knows its handles and refuses one that is not (cupti_callbacks.h,
        // CUPTI_ERROR_INVALID_PARAMETER).
        let code = unsafe { (self.cupti.enable_callback)(1, self.handle, domain, id) };
        self.cupti.checked("cuptiEnableCallback", code)
    }

    /// Gives the slot back to whoever wants it next. Callbacks that are under way may still end
    /// after this.
    ///
    /// # Errors
    /// [`CuptiError::Call`].
    pub fn give_back(self) -> Result<(), CuptiError> {
        // SAFETY: the handle is that of a live subscription, which ends here.
        let code = unsafe { (self.cupti.unsubscribe)(self.handle) };
        self.cupti.checked("cuptiUnsubscribe", code)
    }
}
