//! The event logs' turn, after the measurements are on their way.

use std::time::Instant;

use crate::carried::Carried;
use crate::follow::{CursorError, FollowError};
use crate::forward::{self, ForwardError};
use crate::report::Forwarding;
use crate::setup::{Export, Setup};

/// Forwards event logs until `end`, where there is a backend for them. No fault of theirs is one of
/// the pass.
pub(super) fn forward_logs(
    setup: &Setup,
    export: &Export,
    carried: &mut Carried,
    end: Instant,
) -> Option<Forwarding> {
    let settings = export.forward.as_ref()?;
    let state = &setup.config.paths.state;
    let (forwarded, outcome) = forward::forward(settings, &export.host.name, state, end);
    carried.forwarded.add(&forwarded);
    let mut forwarding = Forwarding::from(forwarded);
    if let Err(fault) = outcome {
        let for_a_person = matches!(
            &fault,
            ForwardError::Follow(FollowError::Cursors(CursorError::Damaged { .. }))
        );
        let place =
            if for_a_person { &mut forwarding.misconfigured } else { &mut forwarding.waits_for };
        *place = Some(fault.to_string());
    }
    for reason in [&forwarding.waits_for, &forwarding.misconfigured].into_iter().flatten() {
        tracing::warn!("event logs wait: {reason}");
    }
    Some(forwarding)
}
