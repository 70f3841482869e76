//! What a log says of a device: the last reading of what is a level, the mean of what is a share.

use warpgauge_formats::event::Device;
use warpgauge_formats::time::Timestamp;

use super::named::cut;

/// A device between two passes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceTally {
    /// The product's name.
    pub name: Option<String>,
    /// `GPU-...`
    pub uuid: Option<String>,
    /// Memory in use, MiB.
    pub used_mib: Last,
    /// Memory that there is, MiB.
    pub total_mib: Last,
    /// Degrees Celsius.
    pub temperature_celsius: Last,
    /// Share of the time in which a kernel ran, percent.
    pub utilization_percent: Mean,
    /// Milliwatts.
    pub power_milliwatts: Mean,
}

/// The latest reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Last(Option<(Timestamp, i64)>);

/// The mean of all readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mean {
    count: u32,
    sum: i128,
}

impl DeviceTally {
    /// Takes in one reading.
    pub fn add(&mut self, time: Timestamp, device: &Device<'_>) {
        let keep = |slot: &mut Option<String>, text: Option<&str>| {
            if slot.is_none() {
                *slot = text.map(|text| cut(text).to_owned());
            }
        };
        keep(&mut self.name, device.name.as_deref());
        keep(&mut self.uuid, device.uuid.as_deref());
        self.used_mib.add(time, device.used_mib);
        self.total_mib.add(time, device.total_mib);
        self.temperature_celsius.add(time, device.temperature_celsius);
        self.utilization_percent.add(device.gpu_percent.filter(|percent| *percent <= 100));
        self.power_milliwatts.add(device.power_milliwatts);
    }
}

impl Last {
    /// A negative reading is none: producers write -1 for what they cannot read.
    fn add(&mut self, time: Timestamp, value: Option<i64>) {
        let Some(value) = value.filter(|value| *value >= 0) else { return };
        if self.0.is_none_or(|(last, _)| last <= time) {
            self.0 = Some((time, value));
        }
    }

    /// The reading, if there was one.
    #[must_use]
    pub fn get(self) -> Option<i64> {
        self.0.map(|(_, value)| value)
    }
}

impl Mean {
    fn add(&mut self, value: Option<i64>) {
        let Some(value) = value.filter(|value| *value >= 0) else { return };
        self.count += 1;
        self.sum += i128::from(value);
    }

    /// The mean, if there was a reading.
    #[must_use]
    pub fn get(self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a mean has no more than 53 bits anyway")]
        (self.count > 0).then(|| self.sum as f64 / f64::from(self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_the_last_and_shares_the_mean_whatever_the_order() {
        let mut tally = DeviceTally::default();
        for (time, value) in [(2, 30), (3, -1), (1, 10)] {
            let value = Some(value);
            let device = Device { used_mib: value, gpu_percent: value, ..Device::default() };
            tally.add(Timestamp(time), &device);
        }
        assert_eq!(tally.used_mib.get(), Some(30));
        assert_eq!(tally.utilization_percent.get(), Some(20.0));
        assert_eq!((tally.total_mib.get(), tally.power_milliwatts.get()), (None, None));
    }
}
