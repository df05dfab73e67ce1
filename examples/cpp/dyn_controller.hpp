// A controller in C++: an exported control cycle, its gains and its memory.
//
//     dyn::Controller controller("kernels", "computed_torque_cycle_arm7");
//     controller.gains(400.0, 40.0);
//     const double *tau = controller.update(t, q, qd, {q_ref, qd_ref, qdd_ref});
//
// The torque is always finite and within the effort limits. report() says whether the
// law drives; a stop lasts until request(dyn::Request::reset). The gravity cycle takes
// no reference.
#ifndef DYN_CONTROLLER_HPP
#define DYN_CONTROLLER_HPP

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "dyn_kernel.hpp"

namespace dyn {

enum class Status { drives, waits, refused, kept, stale, bridges, stopped, failed };
enum class Request { none, ramp, zero, reset, disable };

struct Reference {
    const double *q = nullptr, *qd = nullptr, *qdd = nullptr;
};

struct Report {
    Status status;
    int fault;  // number of what stopped, from 1 on; fault_names() in Python
    double value, bound;
    bool limited;
};

class Controller {
public:
    Controller(const std::string &folder, const std::string &name,
               const std::string &model_hash = "")
        : kernel_(folder, name, model_hash),
          n_(std::size_t(kernel_.about().n_velocities)),
          tracks_(kernel_.about().problem != std::string("gravity_cycle")),
          stiff_(kernel_.about().problem == std::string("impedance_cycle")),
          state_(kernel_.size("state"), 0.0), next_(state_.size(), 0.0),
          q_(n_), qd_(n_), kp_(n_), kd_(n_), q_ref_(n_), qd_ref_(n_), qdd_ref_(n_),
          tau_(n_) {
        kernel_.input("q", q_.data(), n_);
        kernel_.input("qd", qd_.data(), n_);
        kernel_.input(stiff_ ? "damping" : "kd", kd_.data(), n_);
        if (tracks_) {
            kernel_.input(stiff_ ? "stiffness" : "kp", kp_.data(), n_);
            kernel_.input("q_ref", q_ref_.data(), n_);
            kernel_.input("qd_ref", qd_ref_.data(), n_);
            kernel_.input("qdd_ref", qdd_ref_.data(), n_);
        }
        kernel_.input("t", &t_, 1);
        kernel_.input("fresh", &fresh_, 1);
        kernel_.input("request", &request_, 1);
        kernel_.output("tau", tau_.data(), n_);
        kernel_.output("report", report_, 5);
        state_in_ = kernel_.place("state", state_.size(), false);
        state_out_ = kernel_.place("state_next", next_.size(), true);
        kernel_.rebind(state_in_, state_.data(), state_out_, next_.data());
        kernel_.check();
    }

    Controller(const Controller &) = delete;  // the kernel knows the addresses
    Controller &operator=(const Controller &) = delete;

    std::size_t joints() const { return n_; }
    const dyn_interface &about() const { return kernel_.about(); }

    // Gains of all joints [1/s²], [1/s]; of the impedance cycle stiffness and damping
    // [N·m/rad | N/m], [N·m·s/rad | N·s/m]. Throws an Error for one that is negative or not
    // finite, and changes none then.
    void gains(double kp, double kd) {
        const std::vector<double> p(n_, kp), d(n_, kd);
        gains(p.data(), d.data());
    }
    void gains(const double *kp, const double *kd) {  // of joints() numbers
        check(stiff_ ? "stiffness" : "kp", kp);
        check(stiff_ ? "damping" : "kd", kd);
        std::copy(kp, kp + n_, kp_.begin());
        std::copy(kd, kd + n_, kd_.begin());
    }

    // What the next cycle is asked for, besides its torque.
    void request(Request what) noexcept { asked_ = what; }

    // Torque for a new state (joints() numbers each); t: steady time [s]. Without a
    // reference the last one stays, at rest after 0.1 s; before the first one, and after the
    // law has ceased to drive (a stop, silence, a reset), the robot is only carried and braked
    // where it is. Rates that are not given are zero.
    const double *update(double t, const double *q, const double *qd,
                         Reference reference = {}) noexcept {
        std::copy(q, q + n_, q_.begin());
        std::copy(qd, qd + n_, qd_.begin());
        if (tracks_ && (reference.q || !referenced_)) {
            referenced_ = reference.q != nullptr;
            set(q_ref_, referenced_ ? reference.q : q);
            set(qd_ref_, reference.qd);
            set(qdd_ref_, reference.qdd);
            given_ = t;
        } else if (t - given_ > 0.1) {  // its last velocity would lead beyond it
            set(qd_ref_, nullptr);
            set(qdd_ref_, nullptr);
        }
        return run(t, 1.0);
    }

    // Torque of a cycle in which no new state has come.
    const double *watch(double t) noexcept { return run(t, 0.0); }

    Report report() const noexcept {
        if (failed_) return {Status::failed, 0, 0.0, 0.0, false};
        return {Status(int(report_[0])), int(report_[1]), report_[2], report_[3],
                report_[4] != 0.0};
    }

    // Whether the law drives: a reference begins where the robot is then.
    bool drives() const noexcept { return !failed_ && report_[0] == 0.0; }

private:
    void check(const char *name, const double *gains) const {
        for (std::size_t k = 0; k < n_; ++k) {
            if (gains[k] >= 0.0 && gains[k] <= std::numeric_limits<double>::max()) continue;
            char number[32];
            std::snprintf(number, sizeof number, "%g", gains[k]);
            throw Error(std::string(name) + " of joint " + about().velocities[k] + " is " +
                        number + "; valid: finite, 0 or more");
        }
    }

    void set(std::vector<double> &to, const double *from) noexcept {
        if (from) std::copy(from, from + n_, to.begin());
        else std::fill(to.begin(), to.end(), 0.0);
    }

    const double *run(double t, double fresh) noexcept {
        t_ = t;
        fresh_ = fresh;
        request_ = double(int(asked_));
        asked_ = Request::none;
        failed_ = kernel_.run() != 0;
        if (failed_) {  // no requirement stands in a cycle; if one ever does: zero
            std::fill(tau_.begin(), tau_.end(), 0.0);
            return tau_.data();
        }
        state_.swap(next_);
        kernel_.rebind(state_in_, state_.data(), state_out_, next_.data());
        const Status now = Status(int(report_[0]));
        const bool ends = now == Status::waits || now == Status::stale || now == Status::stopped;
        if (ends && drove_) referenced_ = false;  // the robot may be elsewhere when it drives again
        drove_ = !ends && (drove_ || now == Status::drives);
        return tau_.data();
    }

    Kernel kernel_;
    std::size_t n_;
    bool tracks_, stiff_;
    std::vector<double> state_, next_, q_, qd_, kp_, kd_, q_ref_, qd_ref_, qdd_ref_;
    std::vector<double> tau_;
    double t_ = 0.0, given_ = 0.0, fresh_ = 1.0, request_ = 0.0, report_[5] = {};
    Request asked_ = Request::none;
    std::size_t state_in_ = 0, state_out_ = 0;
    bool failed_ = false, referenced_ = false, drove_ = false;
};

}  // namespace dyn

#endif
