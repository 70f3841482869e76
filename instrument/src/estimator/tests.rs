use proptest::prelude::*;

use super::*;

fn key(number: u64) -> [u64; KEY_WORDS] {
    [number, 0, 0, 0, 0, 0]
}

fn all() -> FunctionSet {
    Function::ALL.into_iter().collect()
}

#[test]
fn the_total_is_launches_times_the_mean_of_each_shape() {
    let mut estimator = Estimator::default();
    estimator.count(key(1), 1000);
    estimator.count(key(2), 10);
    estimator.learn(&key(1), all(), [Some(12.0), Some(50.0), None]);
    estimator.learn(&key(2), all(), [Some(7.0), None, Some(25.0)]);
    let estimate = estimator.estimate(all());
    assert_eq!(estimate.instructions, Some(12_070));
    assert_eq!(estimate.percents, [vec![], vec![(50.0, 1000)], vec![(25.0, 10)]]);
    assert_eq!(estimator.estimate(all()), Estimate::default(), "launches are given once");
}

#[test]
fn what_was_never_measured_is_no_zero_and_waits_for_its_measurement() {
    let mut estimator = Estimator::default();
    estimator.count(key(1), 40);
    assert_eq!(estimator.estimate(all()), Estimate::default());
    estimator.count(key(1), 2);
    estimator.learn(&key(1), all(), [Some(10.0), None, None]);
    assert_eq!(estimator.estimate(all()).instructions, Some(420));
}

/// A graph with one launch of shape 1 and three of shape 2, both of one function.
fn learn_graph(estimator: &mut Estimator, instructions: f64) -> Option<f64> {
    let shapes = [(key(1), 1), (key(2), 3)];
    estimator.learn_together(&shapes, all(), [Some(instructions), Some(50.0), None])
}

#[test]
fn shapes_of_one_function_in_a_graph_share_its_mean_and_the_total_is_right() {
    let mut estimator = Estimator::default();
    estimator.count(key(1), 10);
    estimator.count(key(2), 30);
    assert_eq!(learn_graph(&mut estimator, 1_060.0), Some(0.0));
    let estimate = estimator.estimate(all());
    assert_eq!(estimate.instructions, Some(10_600));
    let mut percents = estimate.percents[1].clone();
    percents.sort_by_key(|(_, launches)| *launches);
    assert_eq!(percents, [(50.0, 10), (50.0, 30)]);
}

#[test]
fn what_a_shape_was_seen_to_do_alone_is_taken_off_the_sum_of_a_graph() {
    let mut estimator = Estimator::default();
    estimator.count(key(1), 10);
    estimator.count(key(2), 30);
    learn_graph(&mut estimator, 1_060.0);
    estimator.learn(&key(1), all(), [Some(1_000.0), Some(50.0), None]);
    for _ in 0..200 {
        learn_graph(&mut estimator, 1_060.0);
    }
    assert_eq!(estimator.estimate(all()).instructions, Some(10 * 1_000 + 30 * 20));
}

#[test]
fn what_was_not_asked_for_does_not_wait() {
    let mut estimator = Estimator::default();
    estimator.count(key(1), 40);
    estimator.estimate([Function::Coalescence].into_iter().collect());
    estimator.learn(&key(1), all(), [Some(10.0), Some(5.0), None]);
    let estimate = estimator.estimate(all());
    assert_eq!(estimate.instructions, None);
    assert_eq!(estimate.percents[1], [(5.0, 40)]);
}

#[test]
fn the_share_of_launches_whose_shape_was_measured_is_told() {
    let mut estimator = Estimator::default();
    estimator.begin_survey();
    estimator.count(key(1), 30);
    estimator.count(key(2), 10);
    let instructions = [Function::Instructions].into_iter().collect();
    estimator.learn(&key(1), instructions, [Some(1.0), None, None]);
    assert_eq!(estimator.fresh(instructions), (40, 30));
    assert_eq!(estimator.fresh(all()), (40, 0), "not for all functions");
    estimator.begin_survey();
    assert_eq!(estimator.fresh(all()), (0, 0));
}

#[test]
fn idle_shapes_make_room_and_what_they_waited_with_is_told() {
    let mut estimator = Estimator::default();
    for number in 0..MAX_SHAPES as u64 {
        assert!(estimator.count(key(number), 1));
    }
    assert!(!estimator.count(key(u64::MAX), 1), "full");
    estimator.begin_survey();
    estimator.count(key(0), 1);
    let given_up = estimator.forget_idle(|_| false);
    assert_eq!((given_up, estimator.shapes().count()), (MAX_SHAPES as u64 - 1, 1));
}

#[test]
fn fractions_of_means_are_not_lost_from_interval_to_interval() {
    let mut estimator = Estimator::default();
    estimator.count(key(1), 0);
    for value in [1.0, 2.0] {
        estimator.learn(&key(1), all(), [Some(value), None, None]);
    }
    let mut total = 0;
    for _ in 0..1001 {
        estimator.count(key(1), 1);
        total += estimator.estimate(all()).instructions.unwrap();
    }
    assert!((1501..=1502).contains(&total), "1.5 each: {total}");
}

proptest! {
    #[test]
    fn constant_work_is_estimated_without_an_error(
        shapes in proptest::collection::vec((1_u64..1_000_000, 1_u32..1_000_000), 1..20),
        measurements in 1_usize..20,
    ) {
        let mut estimator = Estimator::default();
        let mut expected = 0;
        for (number, (launches, instructions)) in shapes.iter().enumerate() {
            estimator.count(key(number as u64), *launches);
            for _ in 0..measurements {
                let value = Some(f64::from(*instructions));
                estimator.learn(&key(number as u64), all(), [value, None, None]);
            }
            expected += launches * u64::from(*instructions);
        }
        prop_assert_eq!(estimator.estimate(all()).instructions, Some(expected));
    }

    #[test]
    fn a_mean_lies_between_the_smallest_and_the_largest_measurement(
        values in proptest::collection::vec(0.0_f64..1e15, 1..50)
    ) {
        let mut knowledge = Knowledge::default();
        for value in &values {
            let surprise = knowledge.learn(Some(*value));
            prop_assert!((0.0..=2.0).contains(&surprise), "{}", surprise);
        }
        let Knowledge::Value { mean, variance, .. } = knowledge else { panic!("no value") };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        prop_assert!(least <= mean * (1.0 + 1e-12) && mean <= most * (1.0 + 1e-12));
        prop_assert!(variance >= -1e-6 * most * most && variance <= most * most * 1.001);
    }

    /// The bound of the module's documentation: a mean lags by at most 7 steps of a drift.
    #[test]
    fn a_drift_is_followed_within_seven_steps(start in 1e3_f64..1e6, step in 0.0_f64..1e3, count in 1_u32..200) {
        let mut knowledge = Knowledge::default();
        let mut last = start;
        for number in 0..count {
            last = start + step * f64::from(number);
            knowledge.learn(Some(last));
        }
        let Knowledge::Value { mean, .. } = knowledge else { panic!("no value") };
        prop_assert!(last - mean <= 7.0 * step + 1e-6, "{} behind {}", mean, last);
    }
}
