// Writes C code of Pinocchio's algorithms by CasADi.
//
//   pinocchio_code MODEL FOLDER
//
// MODEL is what Model.saveToText of the bindings wrote. Each algorithm becomes a
// function (q, v, a) in FOLDER/<algorithm>.c; a is an acceleration or a force.

#include <pinocchio/autodiff/casadi.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>
#include <pinocchio/serialization.hpp>

#include <string>
#include <vector>

using Scalar = casadi::SX;
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

static Vector symbols(const casadi::SX & x)
{
  Vector y(x.size1());
  pinocchio::casadi::copy(x, y);
  return y;
}

static casadi::SX dense(const Matrix & x)
{
  casadi::SX y(casadi::Sparsity::dense(x.rows(), x.cols()));
  for (Eigen::Index i = 0; i < x.rows(); ++i)
    for (Eigen::Index j = 0; j < x.cols(); ++j)
      y(i, j) = x(i, j);
  return y;
}

static casadi::SX symmetric(Matrix x)
{
  x.triangularView<Eigen::StrictlyLower>() =
    x.transpose().triangularView<Eigen::StrictlyLower>();
  return dense(x);
}

int main(int count, char ** arguments)
{
  if (count != 3)
    return 2;
  pinocchio::Model robot;
  pinocchio::serialization::loadFromText(robot, arguments[1]);
  const std::string folder = std::string(arguments[2]) + "/";
  const pinocchio::ModelTpl<Scalar> model = robot.cast<Scalar>();
  pinocchio::DataTpl<Scalar> data(model);
  const casadi::SX sq = casadi::SX::sym("q", model.nq), sv = casadi::SX::sym("v", model.nv),
                   sa = casadi::SX::sym("a", model.nv);
  const Vector q = symbols(sq), v = symbols(sv), a = symbols(sa);
  const auto write = [&](const std::string & name, const std::vector<casadi::SX> & results) {
    casadi::CodeGenerator generator(name + ".c");
    generator.add(casadi::Function(name, {sq, sv, sa}, results));
    generator.generate(folder);
    data = pinocchio::DataTpl<Scalar>(model);
  };

  write("rnea", {dense(pinocchio::rnea(model, data, q, v, a))});
  write("bias", {dense(pinocchio::nonLinearEffects(model, data, q, v))});
  write("crba", {symmetric(pinocchio::crba(model, data, q, pinocchio::Convention::LOCAL))});
  write("mass_matrix_inverse", {symmetric(pinocchio::computeMinverse(model, data, q))});
  pinocchio::computeRNEADerivatives(model, data, q, v, a);
  write("id_derivatives", {dense(data.dtau_dq), dense(data.dtau_dv), symmetric(data.M)});
  write("aba", {dense(pinocchio::aba(model, data, q, v, a, pinocchio::Convention::LOCAL))});
  pinocchio::computeABADerivatives(model, data, q, v, a);
  write("fd_derivatives", {dense(data.ddq_dq), dense(data.ddq_dv), symmetric(data.Minv)});
  const Vector rate =
    v + pinocchio::aba(model, data, q, v, a, pinocchio::Convention::LOCAL) * Scalar(0.001);
  const Vector next = pinocchio::integrate(model, q, Vector(rate * Scalar(0.001)));
  write("semi_implicit_euler", {dense(next), dense(rate)});
}
