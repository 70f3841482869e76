//! Every event that there can be, and what is left of it where nothing is lost.

use proptest::prelude::*;
use warpgauge_formats::event::{
    Copy, CopyKind, Device, Event, Host, Kernel, KernelDetails, Phase, Profile, Sampling, Scope,
    Source, Start, StaticDevice, System, Text, What,
};
use warpgauge_formats::time::{Span, Timestamp};

/// Events of up to two sessions, each of which may or may not have its beginning.
pub(crate) fn events() -> impl Strategy<Value = Vec<Event<'static>>> {
    prop::collection::vec(any::<u32>(), 0..600).prop_map(|numbers| {
        let mut draw = Draw {
            numbers: numbers.into_iter(),
            correlation: 0,
            time: 1_706_800_123_000_000_000,
            fill: 2,
        };
        let sources = [draw.source(0), draw.source(1)];
        let mut events = vec![];
        for source in &sources {
            if draw.below(4) > 0 {
                let what = What::Start(draw.start());
                events.push(Event { source: source.clone(), what });
            }
        }
        while !draw.is_over() {
            let source = sources[draw.below(2)].clone();
            let what = draw.what();
            events.push(Event { source, what });
        }
        events
    })
}

/// Turns numbers into events. Where they are used up, all that may be absent is.
struct Draw {
    numbers: std::vec::IntoIter<u32>,
    correlation: i64,
    time: i64,
    /// Of 24 things that may be absent, so many are there. Where few are, a loss shows which.
    fill: usize,
}

impl Draw {
    fn is_over(&self) -> bool {
        self.numbers.len() == 0
    }

    fn below(&mut self, bound: usize) -> usize {
        self.numbers.next().unwrap_or(0) as usize % bound
    }

    fn whole(&mut self) -> i64 {
        match self.below(16) {
            0 => [i64::MIN, i64::MAX, -1, i64::from(u32::MAX)][self.below(4)],
            1 => -(self.below(1000) as i64),
            2..5 => self.below(100_000_000) as i64,
            _ => self.below(5) as i64,
        }
    }

    fn time(&mut self) -> Timestamp {
        self.time += self.below(1_000_000) as i64 - 100_000;
        Timestamp(if self.below(40) == 1 { self.whole() } else { self.time })
    }

    fn text(&mut self) -> Text<'static> {
        let texts = [
            "gemm",
            "",
            "Forward",
            "a\"b\\c",
            "é\n漢🚀",
            "f@/src/a.cu",
            "/src/a.cu",
            "x@y",
            "\u{1}",
        ];
        texts[self.below(texts.len())].into()
    }

    fn share(&mut self) -> f64 {
        [0.75, 0.0, 1.0, 0.1, 1e300, -0.5, f64::INFINITY][self.below(7)]
    }

    fn some<T>(&mut self, one: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(24) > 23 - self.fill).then(|| one(self))
    }

    fn few<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.some(|draw| draw.below(3)).unwrap_or(0)).map(|_| one(self)).collect()
    }

    fn n(&mut self) -> Option<i64> {
        self.some(Self::whole)
    }

    fn t(&mut self) -> Option<Text<'static>> {
        self.some(Self::text)
    }

    fn f(&mut self) -> Option<f64> {
        self.some(Self::share)
    }

    fn dim3(&mut self) -> [i64; 3] {
        [self.whole().saturating_abs(), 1, self.below(7) as i64]
    }

    fn source(&mut self, number: i64) -> Source<'static> {
        Source {
            session: (self.below(4) > 0).then(|| format!("session-{number}").into()),
            pid: (self.below(4) > 0).then_some(1000 + number),
            app: (self.below(4) > 0).then(|| self.text()),
        }
    }

    fn host(&mut self) -> Option<Host> {
        self.some(|draw| Host {
            cpu_centipercent: draw.n(),
            ram_used_mib: draw.n(),
            ram_total_mib: Some(32_768),
        })
    }

    fn device(&mut self) -> Device<'static> {
        Device {
            index: self.below(3) as i64,
            name: self.t(),
            uuid: self.t(),
            vendor: self.t(),
            pci_bus: self.n(),
            used_mib: self.n(),
            free_mib: self.n(),
            total_mib: self.n(),
            gpu_percent: self.n(),
            memory_percent: self.n(),
            temperature_celsius: self.n(),
            power_milliwatts: self.n(),
            graphics_mhz: self.n(),
            multiprocessor_mhz: self.n(),
            memory_mhz: self.n(),
            throttled_by_power: self.n(),
            throttled_by_heat: self.n(),
            pcie_received_bytes_per_second: self.n(),
            pcie_sent_bytes_per_second: self.n(),
        }
    }

    fn static_device(&mut self) -> StaticDevice<'static> {
        StaticDevice {
            index: self.below(3) as i64,
            name: self.t(),
            uuid: self.t(),
            vendor: self.t(),
            compute_major: self.n(),
            compute_minor: self.n(),
            l2_cache_bytes: self.n(),
            shared_bytes_per_block: self.n(),
            registers_per_block: self.n(),
            multiprocessors: self.n(),
            warp_size: self.n(),
        }
    }

    fn start(&mut self) -> Start<'static> {
        Start {
            time: self.time(),
            log_path: self.t(),
            scope_rate_ms: self.n(),
            system_rate_ms: self.n(),
            host: self.host(),
            devices: self.few(Self::device),
            static_devices: self.few(Self::static_device),
        }
    }

    fn what(&mut self) -> What<'static> {
        self.fill = [1, 2, 8, 20][self.below(4)];
        match self.below(8) {
            0 | 1 => What::Kernel(self.kernel()),
            2 => What::Copy(self.copy()),
            3 => What::Scope(self.scope()),
            4 => What::Profile(self.profile()),
            5 => What::System(System {
                time: self.time(),
                name: self.t(),
                host: self.host(),
                devices: self.few(Self::device),
            }),
            6 => What::Sampling(Sampling {
                time: self.time(),
                began: self.below(2) == 0,
                name: self.t(),
                host: self.host(),
                devices: self.few(Self::device),
            }),
            _ => match self.below(3) {
                0 => What::End(self.time()),
                _ => {
                    // Nobody's: no kernel has a negative id here.
                    self.correlation += 1;
                    What::KernelDetails(self.details(Some(-self.correlation)))
                }
            },
        }
    }

    fn kernel(&mut self) -> Kernel<'static> {
        self.correlation += 1;
        let correlation = self.correlation;
        let correlation = self.some(|_| correlation);
        let details = self.some(|draw| draw.details(correlation));
        let external_kind = self.n();
        Kernel {
            start: self.time(),
            duration: Span(self.whole()),
            name: self.text(),
            device: self.n(),
            stream: self.n(),
            correlation,
            dynamic_shared_bytes: self.n(),
            registers: self.n(),
            grid: self.some(Self::dim3),
            block: self.some(Self::dim3),
            has_details: self.some(|draw| draw.below(2) == 0),
            details,
            call_start: self.some(Self::time),
            call_end: self.some(Self::time),
            external_kind,
            external: self.n(),
            platform: self.t(),
            error: self.t(),
            tag: self.t(),
        }
    }

    fn details(&mut self, correlation: Option<i64>) -> KernelDetails<'static> {
        KernelDetails {
            correlation,
            grid: self.some(Self::dim3),
            block: self.some(Self::dim3),
            static_shared_bytes: self.n(),
            local_bytes: self.n(),
            const_bytes: self.n(),
            occupancy: self.f(),
            register_occupancy: self.f(),
            shared_memory_occupancy: self.f(),
            warp_occupancy: self.f(),
            block_occupancy: self.f(),
            limiting_resource: self.t(),
            max_active_blocks: self.n(),
            local_total_bytes: self.n(),
            local_bytes_per_thread: self.n(),
            cache_config_requested: self.n(),
            cache_config_executed: self.n(),
            shared_executed_bytes: self.n(),
            scope_path: self.t(),
            stack: self.t(),
        }
    }

    fn copy(&mut self) -> Copy<'static> {
        Copy {
            start: self.time(),
            duration: Span(self.whole()),
            bytes: self.whole(),
            kind: CopyKind(self.below(13) as i64),
            stream: self.n(),
            correlation: self.n(),
            device: self.n(),
            call_start: self.some(Self::time),
            call_end: self.some(Self::time),
            platform: self.t(),
            name: self.t(),
            source: self.t(),
            destination: self.t(),
            scope_path: self.t(),
            scope_depth: self.n(),
            stack: self.t(),
        }
    }

    fn scope(&mut self) -> Scope<'static> {
        use Phase::{Begin, Continue, End, Sample, Suspend};
        Scope {
            phase: [Begin, End, Begin, End, Sample, Suspend, Continue][self.below(7)],
            time: self.time(),
            name: self.text(),
            instance: self.n(),
            depth: self.n(),
            began: self.some(Self::time),
            duration: self.some(|draw| Span(draw.whole())),
            tag: self.t(),
            path: self.t(),
            repeat: self.n(),
            warmup: self.n(),
            original_start: self.some(Self::time),
            host: self.host(),
            devices: self.few(Self::device),
        }
    }

    fn profile(&mut self) -> Profile<'static> {
        Profile {
            time: self.time(),
            correlation: self.n(),
            device: self.n(),
            function: self.t(),
            pc_offset: self.n(),
            metric: self.t(),
            value: self.n(),
            stall_reason: self.n(),
            stall_name: self.t(),
            kind: self.n(),
            scope: self.t(),
            scope_ended: false,
            source_file: self.t(),
            source_line: self.n(),
        }
    }
}

/// An event without what is said twice, or says nothing, or is the log's word for itself.
///
/// Two events that are equal here tell the same, whatever the form in which they were told.
pub(crate) fn essence(mut event: Event<'static>) -> Event<'static> {
    match &mut event.what {
        What::Kernel(kernel) => kernel_essence(kernel),
        What::Scope(scope) => {
            scope.tag = scope.tag.take().filter(|tag| !tag.is_empty());
            scope.repeat = scope.repeat.filter(|count| *count != 0);
            scope.warmup = scope.warmup.filter(|count| *count != 0);
        }
        What::Profile(sample) => {
            // `function@file` has the file.
            let file = sample.source_file.take().filter(|file| !sample.is_in_function(file));
            sample.source_file = file;
            sample.source_line = sample.source_line.filter(|line| *line != 0);
            sample.scope_ended = false;
        }
        _ => {}
    }
    event
}

fn kernel_essence(kernel: &mut Kernel<'static>) {
    if let Some(details) = kernel.details.take() {
        kernel.grid = kernel.grid.or(details.grid);
        kernel.block = kernel.block.or(details.block);
        let rest = KernelDetails { correlation: None, grid: None, block: None, ..details };
        kernel.details = (rest != KernelDetails::default()).then_some(rest);
    }
    // It says where the log tells more, not what the kernel was.
    kernel.has_details = None;
    kernel.external_kind = kernel.external_kind.filter(|kind| *kind != 0);
    kernel.external = kernel.external.filter(|id| *id != 0);
}
