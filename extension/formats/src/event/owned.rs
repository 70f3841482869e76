//! Events that outlive the call that handed them on.

use std::borrow::Cow;

use super::{
    Copy, Device, Event, Kernel, KernelDetails, Profile, Sampling, Scope, Source, Start,
    StaticDevice, System, Text, What,
};

/// Keeps a text for longer than its line.
pub(super) fn keep(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

/// Keeps a text that may be absent.
pub(super) fn keep_some(text: Option<Text<'_>>) -> Option<Text<'static>> {
    text.map(keep)
}

fn keep_devices(devices: Vec<Device<'_>>) -> Vec<Device<'static>> {
    devices.into_iter().map(Device::into_owned).collect()
}

impl Event<'_> {
    /// The same event with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        Event { source: self.source.into_owned(), what: self.what.into_owned() }
    }
}

impl Source<'_> {
    /// The same source with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Source<'static> {
        Source { session: keep_some(self.session), app: keep_some(self.app), pid: self.pid }
    }
}

impl What<'_> {
    /// The same with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> What<'static> {
        match self {
            Self::Start(start) => What::Start(start.into_owned()),
            Self::End(time) => What::End(time),
            Self::Sampling(sampling) => What::Sampling(Sampling {
                name: keep_some(sampling.name),
                devices: keep_devices(sampling.devices),
                ..sampling
            }),
            Self::Kernel(kernel) => What::Kernel(kernel.into_owned()),
            Self::KernelDetails(details) => What::KernelDetails(KernelDetails::into_owned(details)),
            Self::Copy(copy) => What::Copy(copy.into_owned()),
            Self::Scope(scope) => What::Scope(scope.into_owned()),
            Self::Profile(sample) => What::Profile(sample.into_owned()),
            Self::System(system) => What::System(System {
                name: keep_some(system.name),
                devices: keep_devices(system.devices),
                ..system
            }),
        }
    }
}

impl Start<'_> {
    /// The same beginning with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Start<'static> {
        Start {
            log_path: keep_some(self.log_path),
            devices: keep_devices(self.devices),
            static_devices: self.static_devices.into_iter().map(StaticDevice::into_owned).collect(),
            ..self
        }
    }
}

impl Kernel<'_> {
    /// The same kernel with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Kernel<'static> {
        Kernel {
            name: keep(self.name),
            details: self.details.map(KernelDetails::into_owned),
            platform: keep_some(self.platform),
            error: keep_some(self.error),
            tag: keep_some(self.tag),
            ..self
        }
    }
}

impl Copy<'_> {
    /// The same copy with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Copy<'static> {
        Copy {
            platform: keep_some(self.platform),
            name: keep_some(self.name),
            source: keep_some(self.source),
            destination: keep_some(self.destination),
            scope_path: keep_some(self.scope_path),
            stack: keep_some(self.stack),
            ..self
        }
    }
}

impl Scope<'_> {
    /// The same scope with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Scope<'static> {
        Scope {
            name: keep(self.name),
            tag: keep_some(self.tag),
            path: keep_some(self.path),
            devices: keep_devices(self.devices),
            ..self
        }
    }
}

impl Profile<'_> {
    /// The same sample with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Profile<'static> {
        Profile {
            function: keep_some(self.function),
            metric: keep_some(self.metric),
            stall_name: keep_some(self.stall_name),
            scope: keep_some(self.scope),
            source_file: keep_some(self.source_file),
            ..self
        }
    }
}
