// SPDX-License-Identifier: MIT
// Test token that MockUSDT and MockUSDTTron forward to after `deprecate`. It logs their transfers itself. Whoever deployed it
// names the legacy contract once, and hands out the supply as the issuer carries balances over.
pragma solidity ^0.8.20;
contract UpgradedUSDT {
    string public name = "Tether USD";
    string public symbol = "USDT";
    uint8 public constant decimals = 6;
    uint256 public totalSupply;
    address public owner;
    address public legacy;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    modifier onlyLegacy() { require(msg.sender == legacy); _; }
    constructor(uint256 supply) { owner = msg.sender; totalSupply = supply; balanceOf[msg.sender] = supply; }
    function setLegacy(address a) external { require(msg.sender == owner && legacy == address(0)); legacy = a; }
    function _move(address f, address t, uint256 v) private {
        require(balanceOf[f] >= v);
        balanceOf[f] -= v; balanceOf[t] += v; emit Transfer(f, t, v);
    }
    function _spend(address from, address spender, uint256 v) private {
        uint256 a = allowance[from][spender];
        require(a >= v);
        if (a < type(uint256).max) allowance[from][spender] = a - v;
    }
    function _approve(address from, address spender, uint256 v) private { allowance[from][spender] = v; emit Approval(from, spender, v); }
    function transfer(address to, uint256 v) external returns (bool) { _move(msg.sender, to, v); return true; }
    function transferFrom(address from, address to, uint256 v) external returns (bool) { _spend(from, msg.sender, v); _move(from, to, v); return true; }
    function approve(address spender, uint256 v) external returns (bool) { _approve(msg.sender, spender, v); return true; }
    function transferByLegacy(address from, address to, uint256 v) external onlyLegacy { _move(from, to, v); }
    function transferFromByLegacy(address sender, address from, address to, uint256 v) external onlyLegacy { _spend(from, sender, v); _move(from, to, v); }
    function approveByLegacy(address from, address spender, uint256 v) external onlyLegacy { _approve(from, spender, v); }
}
