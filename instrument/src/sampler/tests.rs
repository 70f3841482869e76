use proptest::prelude::*;

use super::*;
use crate::cupti::FailedCall;
use crate::window::Part;

const SECOND: Duration = Duration::from_secs(1);

fn key(number: u64) -> [u64; KEY_WORDS] {
    [number, 0, 0, 0, 0, 0]
}

fn functions() -> FunctionSet {
    [Function::Instructions, Function::Divergence].into_iter().collect()
}

fn outcome(number: u64, opened_at: Instant, took: Duration, refusal: Refusal) -> Outcome {
    let (shape, functions) = (key(number), functions());
    let result = Err(refusal);
    Outcome { shape, by_graph: false, device: 0, functions, opened_at, took, result }
}

fn measured(number: u64, opened_at: Instant, took: Duration) -> Outcome {
    let part = Part { shapes: vec![(key(number), 1)], ..Part::default() };
    Outcome { result: Ok(vec![part]), ..outcome(number, opened_at, took, Refusal::Empty) }
}

fn learn(estimator: &mut Estimator, number: u64, value: f64) -> Option<f64> {
    estimator.learn(&key(number), functions(), [Some(value), None, Some(0.0)])
}

#[test]
fn shapes_that_were_never_measured_come_first_and_the_most_launched_before_the_others() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    assert_eq!(sampler.wish(&estimator, functions(), now), None);
    for (number, launches) in [(1, 10), (2, 30), (3, 1_000_000)] {
        estimator.count(key(number), launches);
    }
    learn(&mut estimator, 3, 12.0);
    let wish = sampler.wish(&estimator, functions(), now).unwrap();
    assert_eq!(wish.shapes, [hash(&key(2)), hash(&key(1))], "the measured one has to wait");
    for number in [1, 2] {
        learn(&mut estimator, number, 12.0);
    }
    let wish = sampler.wish(&estimator, functions(), now).unwrap();
    assert!(wish.shapes.contains(&hash(&key(3))));
}

#[test]
fn the_one_that_scatters_comes_before_the_one_that_is_always_alike() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    for number in [1, 2] {
        estimator.count(key(number), 100);
    }
    for value in [10.0, 30.0] {
        learn(&mut estimator, 1, 20.0);
        learn(&mut estimator, 2, value);
    }
    let wish = sampler.wish(&estimator, functions(), now).unwrap();
    assert_eq!(wish.shapes, [hash(&key(2)), hash(&key(1))]);
}

#[test]
fn a_window_is_paid_for_before_the_next_one() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1);
    estimator.count(key(2), 1);
    sampler.judge(&measured(1, now, Duration::from_millis(50)), Some(0.0), now);
    let at = |sampler: &mut Sampler, later| sampler.wish(&estimator, functions(), now + later);
    assert_eq!(at(&mut sampler, Duration::from_millis(4_999)), None, "50 ms are 1 % of 5 s");
    assert!(at(&mut sampler, 5 * SECOND).is_some());
    sampler.judge(
        &measured(1, now + 5 * SECOND, Duration::from_micros(1)),
        Some(0.0),
        now + 5 * SECOND,
    );
    assert_eq!(at(&mut sampler, Duration::from_millis(5_999)), None, "one a second at most");
    assert!(at(&mut sampler, 6 * SECOND).is_some());
}

#[test]
fn slow_windows_make_the_pauses_grow() {
    let mut now = Instant::now();
    let mut sampler = Sampler::new(10.0, SECOND, now);
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1);
    for doubled in [2, 4, 8] {
        sampler.judge(&measured(2, now, Duration::from_millis(200)), Some(0.0), now);
        let pause = 2 * SECOND * doubled;
        assert_eq!(sampler.wish(&estimator, functions(), now + pause - SECOND / 1000), None);
        now += pause;
        assert!(sampler.wish(&estimator, functions(), now).is_some());
    }
}

#[test]
fn a_shape_that_does_as_expected_is_asked_ever_more_rarely() {
    let mut now = Instant::now();
    let mut sampler = Sampler::new(100.0, SECOND, now);
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1);
    let mut waits = Vec::new();
    for surprise in [0.0, 0.0, 0.0, 0.5, 0.0] {
        learn(&mut estimator, 1, 12.0);
        sampler.judge(&measured(1, now, Duration::ZERO), Some(surprise), now);
        let mut wait = 0;
        while sampler.wish(&estimator, functions(), now).is_none() {
            now += SECOND;
            wait += 1;
        }
        waits.push(wait);
    }
    assert_eq!(waits, [2, 4, 8, 2, 4]);
}

#[test]
fn a_window_over_the_limit_is_the_last_one() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let verdict = sampler.judge(&measured(1, now, LIMIT + SECOND), Some(0.0), now);
    assert!(matches!(verdict, Verdict::Stop(why) if why.contains("3.0 s")));
}

#[test]
fn patches_that_count_nothing_are_tried_eagerly_and_then_given_up() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1);
    assert!(sampler.wish(&estimator, functions(), now).unwrap().lazily);
    let empty = outcome(1, now, Duration::ZERO, Refusal::Empty);
    assert_eq!(sampler.judge(&empty, None, now), Verdict::GoOn);
    assert!(!sampler.wish(&estimator, functions(), now + SECOND).unwrap().lazily);
    for _ in 1..MOST_EMPTY {
        assert_eq!(sampler.judge(&empty, None, now), Verdict::GoOn);
    }
    assert!(matches!(sampler.judge(&empty, None, now), Verdict::Stop(_)));
}

#[test]
fn metrics_that_do_not_fit_together_are_counted_one_function_at_a_time() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1);
    let failed = Refusal::Failed(FailedCall { call: SassCall::SetConfig, code: 1 });
    let together = outcome(1, now, Duration::ZERO, failed);
    assert_eq!(sampler.judge(&together, None, now), Verdict::GoOn);
    let mut seen = Vec::new();
    for round in 1..=2 {
        let wish = sampler.wish(&estimator, functions(), now + round * SECOND).unwrap();
        seen.push(wish.functions.to_string());
        sampler.judge(&measured(1, now, Duration::ZERO), Some(0.0), now);
    }
    seen.sort();
    assert_eq!(seen, ["0", "3"]);
    let alone = Outcome { functions: [Function::Divergence].into_iter().collect(), ..together };
    assert!(matches!(sampler.judge(&alone, None, now), Verdict::Drop(..)));
}

#[test]
fn graphs_that_count_nothing_are_spared_and_other_launches_are_not() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1);
    let empty = outcome(1, now, Duration::ZERO, Refusal::Empty);
    let empty = Outcome { by_graph: true, ..empty };
    for _ in 0..MOST_EMPTY {
        assert_eq!(sampler.judge(&empty, None, now), Verdict::GoOn);
    }
    assert!(matches!(sampler.judge(&empty, None, now), Verdict::SpareGraphs(_)));
    assert!(sampler.wish(&estimator, functions(), now + SECOND).is_some());
}

/// The shapes that were launched last look like the most frequent ones, and are the last to come
/// again.
#[test]
fn every_shape_of_a_long_round_is_wished_for_at_once() {
    let mut now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    for number in 0..500 {
        estimator.begin_survey();
        estimator.count(key(number), 1);
    }
    assert_eq!(sampler.wish(&estimator, functions(), now).unwrap().shapes.len(), 500);
    for number in 0..500 {
        learn(&mut estimator, number, 12.0);
        estimator.count(key(number), 1);
    }
    sampler.judge(&measured(450, now, Duration::ZERO), Some(0.0), now);
    now += SECOND;
    let wish = sampler.wish(&estimator, functions(), now).unwrap();
    assert_eq!(wish.shapes.len(), 499, "all but the one that was just measured");
}

#[test]
fn shapes_that_fall_together_in_the_table_take_turns() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    for number in 0..3 {
        estimator.count(key(number), 10 - number);
    }
    let mut first = || sampler.wish(&estimator, functions(), now).unwrap().shapes[0];
    let firsts: HashSet<u64> = (0..3).map(|_| first()).collect();
    assert_eq!(firsts.len(), 3);
}

/// As one that a program launches once, when it starts.
#[test]
fn a_shape_that_never_gets_a_window_does_not_hold_up_the_others() {
    let mut now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    for number in [1, 2] {
        estimator.count(key(number), 100);
    }
    let mut seconds_until_two = Vec::new();
    for _ in 0..4 {
        learn(&mut estimator, 2, 12.0);
        let mut seconds = 0;
        loop {
            estimator.begin_survey();
            estimator.count(key(2), 100);
            let wish = sampler.wish(&estimator, functions(), now).unwrap();
            assert!(wish.shapes.contains(&hash(&key(1))));
            if wish.shapes.contains(&hash(&key(2))) {
                break;
            }
            now += SECOND;
            seconds += 1;
        }
        sampler.judge(&measured(2, now, Duration::ZERO), Some(1.0), now);
        now += 3 * SECOND;
        seconds_until_two.push(seconds);
    }
    assert_eq!(seconds_until_two, [8, 8, 0, 8]);
}

#[test]
fn a_collective_kernel_is_never_asked_for_again() {
    let now = Instant::now();
    let mut sampler = Sampler::new(1.0, SECOND, now);
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1);
    let refused = outcome(1, now, Duration::ZERO, Refusal::Collective);
    assert_eq!(sampler.judge(&refused, None, now), Verdict::GoOn);
    assert_eq!(sampler.wish(&estimator, functions(), now + 100 * SECOND), None);
    assert!(!sampler.may_measure(&key(1)));
}

proptest! {
    /// Whatever windows take, their share of the time until the next one may open is within the
    /// budget.
    #[test]
    fn no_sequence_of_windows_exceeds_the_budget(
        milliseconds in proptest::collection::vec(0_u64..2000, 1..50),
        budget in 0.1_f64..50.0,
    ) {
        let start = Instant::now();
        let mut now = start;
        let mut sampler = Sampler::new(budget, Duration::from_millis(1), now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        let mut spent = Duration::ZERO;
        for took in milliseconds.into_iter().map(Duration::from_millis) {
            sampler.judge(&measured(2, now, took), Some(0.0), now);
            spent += took;
            now = sampler.not_before;
            prop_assert!(sampler.wish(&estimator, functions(), now).is_some());
            let share = 100.0 * spent.as_secs_f64() / (now - start).as_secs_f64();
            prop_assert!(share <= budget * 1.000_001, "{} of {}", share, budget);
        }
    }
}
