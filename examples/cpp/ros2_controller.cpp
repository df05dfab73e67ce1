// Glue between dyn::Controller and a ros2_control controller.
//
// NOT COMPILED AGAINST ros2_control HERE: written from the interfaces of
// controller_interface (ROS 2 Jazzy), to start from. The CMake project of this folder
// leaves it out. A package needs besides: ament_cmake, controller_interface, pluginlib,
// realtime_tools, trajectory_msgs, and a plugin description for dyn_arm::ArmController.
//
// Parameters: joints (in the order of the robot's model), folder and kernel of the
// exported control cycle, model_hash, kp, kd.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <controller_interface/controller_interface.hpp>
#include <hardware_interface/types/hardware_interface_type_values.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <realtime_tools/realtime_buffer.hpp>
#include <trajectory_msgs/msg/joint_trajectory_point.hpp>

#include "dyn_controller.hpp"

namespace dyn_arm {

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using Point = trajectory_msgs::msg::JointTrajectoryPoint;

class ArmController : public controller_interface::ControllerInterface {
public:
    CallbackReturn on_init() override {
        auto_declare<std::vector<std::string>>("joints", {});
        auto_declare<std::string>("folder", "");
        auto_declare<std::string>("kernel", "");
        auto_declare<std::string>("model_hash", "");
        auto_declare<double>("kp", 100.0);
        auto_declare<double>("kd", 20.0);
        return CallbackReturn::SUCCESS;
    }

    InterfaceConfiguration command_interface_configuration() const override {
        return names({hardware_interface::HW_IF_EFFORT});
    }

    InterfaceConfiguration state_interface_configuration() const override {
        return names({hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY});
    }

    // Everything that allocates, reads files or may fail is here, not in update().
    CallbackReturn on_configure(const rclcpp_lifecycle::State &) override try {
        const auto text = [this](const char *name) {
            return get_node()->get_parameter(name).as_string();
        };
        joints_ = get_node()->get_parameter("joints").as_string_array();
        controller_ = std::make_unique<dyn::Controller>(text("folder"), text("kernel"),
                                                        text("model_hash"));
        const auto &about = controller_->about();
        if (joints_.size() != controller_->joints()) throw dyn::Error("wrong number of joints");
        for (std::size_t j = 0; j < joints_.size(); ++j)
            if (joints_[j] != about.velocities[j])
                throw dyn::Error("joint " + joints_[j] + " stands where the model has " +
                                 about.velocities[j]);
        controller_->gains(get_node()->get_parameter("kp").as_double(),
                           get_node()->get_parameter("kd").as_double());
        for (auto *row : {&q_, &qd_, &q_ref_, &qd_ref_, &qdd_ref_})
            row->assign(joints_.size(), 0.0);
        point_ = get_node()->create_subscription<Point>(
            "~/reference", 1, [this](const Point::SharedPtr message) {
                const std::size_t n = joints_.size();
                if (message->positions.size() == n && message->velocities.size() == n &&
                    message->accelerations.size() == n)
                    buffer_.writeFromNonRT(message);
            });
        return CallbackReturn::SUCCESS;
    } catch (const std::exception &error) {
        RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
        return CallbackReturn::ERROR;
    }

    CallbackReturn on_activate(const rclcpp_lifecycle::State &) override {
        buffer_.writeFromNonRT(nullptr);
        controller_->request(dyn::Request::reset);  // a person activated it
        return CallbackReturn::SUCCESS;
    }

    CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override {
        for (auto &command : command_interfaces_) (void)command.set_value(0.0);
        return CallbackReturn::SUCCESS;
    }

    controller_interface::return_type update(const rclcpp::Time &,
                                             const rclcpp::Duration &period) override {
        const std::size_t n = joints_.size();
        for (std::size_t j = 0; j < n; ++j) {  // what is not finite is refused below
            q_[j] = state_interfaces_[2 * j].get_value();
            qd_[j] = state_interfaces_[2 * j + 1].get_value();
        }
        const auto *point = buffer_.readFromRT();
        if (point && *point && controller_->drives()) {
            std::copy((*point)->positions.begin(), (*point)->positions.end(), q_ref_.begin());
            std::copy((*point)->velocities.begin(), (*point)->velocities.end(), qd_ref_.begin());
            std::copy((*point)->accelerations.begin(), (*point)->accelerations.end(),
                      qdd_ref_.begin());
        } else if (!controller_->drives()) {  // it begins where the robot is
            q_ref_ = q_;
            std::fill(qd_ref_.begin(), qd_ref_.end(), 0.0);
            std::fill(qdd_ref_.begin(), qdd_ref_.end(), 0.0);
        }
        steady_ += period.seconds();
        const double *tau = controller_->update(steady_, q_.data(), qd_.data(),
                                                {q_ref_.data(), qd_ref_.data(), qdd_ref_.data()});
        for (std::size_t j = 0; j < n; ++j) (void)command_interfaces_[j].set_value(tau[j]);
        return controller_interface::return_type::OK;
    }

private:
    InterfaceConfiguration names(const std::vector<std::string> &interfaces) const {
        InterfaceConfiguration asked{interface_configuration_type::INDIVIDUAL, {}};
        for (const auto &joint : get_node()->get_parameter("joints").as_string_array())
            for (const auto &interface : interfaces)
                asked.names.push_back(joint + "/" + interface);
        return asked;
    }

    std::vector<std::string> joints_;
    std::unique_ptr<dyn::Controller> controller_;
    std::vector<double> q_, qd_, q_ref_, qd_ref_, qdd_ref_;
    rclcpp::Subscription<Point>::SharedPtr point_;
    realtime_tools::RealtimeBuffer<Point::SharedPtr> buffer_;
    double steady_ = 0.0;
};

}  // namespace dyn_arm

PLUGINLIB_EXPORT_CLASS(dyn_arm::ArmController, controller_interface::ControllerInterface)
