use super::*;

fn instructions() -> FunctionSet {
    [Function::Instructions].into_iter().collect()
}

#[test]
fn a_window_is_armed_once_and_can_be_disarmed_until_it_opens() {
    let window = Window::new();
    assert!(window.disarm(), "an idle one needs nothing");
    assert!(window.arm([1].into_iter(), instructions(), true));
    assert!(!window.arm([2].into_iter(), instructions(), true));
    assert!(window.disarm());
    assert!(window.arm([2].into_iter(), instructions(), true));
    assert_eq!(window.take(), None);
}

/// A launch that entered before a window opened and leaves after it may have run inside.
#[test]
fn a_launch_on_its_way_when_a_window_opens_disturbs_it() {
    let window = Window::new();
    let mark = window.entering(16, |_| None);
    assert!(window.arm([1].into_iter(), instructions(), true));
    let order = window.handover.open(16).unwrap();
    let outcome = Outcome {
        shape: [0; KEY_WORDS],
        by_graph: false,
        device: 0,
        functions: instructions(),
        opened_at: Instant::now(),
        took: Duration::ZERO,
        result: Ok(Vec::new()),
    };
    let record = Record { number: order.number, work: Work::Kernel(0), outcome };
    *window.record.lock().unwrap() = Some(record);
    window.handover.done();
    window.leaving(mark, 16, true, None, None);
    assert_eq!(window.take().unwrap().result, Err(Refusal::Disturbed));
}

#[test]
fn launches_into_other_contexts_do_not_disturb() {
    let window = Window::new();
    assert!(window.arm([1].into_iter(), instructions(), true));
    let order = window.handover.open(16).unwrap();
    let mark = window.entering(32, |_| None);
    window.leaving(mark, 32, true, None, None);
    assert_eq!(window.handover.disturbed.load(Ordering::Acquire), 0);
    let mark = window.entering(16, |_| None);
    assert_eq!(mark, order.mark_of_refused());
    assert_eq!(window.handover.disturbed.load(Ordering::Acquire), 1);
}

#[test]
fn captures_are_counted_and_one_from_before_we_looked_is_not() {
    let window = Window::new();
    window.capture_ended();
    assert!(!window.is_capturing_anywhere());
    window.capture_begins();
    window.capture_begins();
    window.capture_ended();
    assert!(window.is_capturing_anywhere());
    window.capture_ended();
    assert!(!window.is_capturing_anywhere());
}
